/** The changes of the path as rows: what, when, with which value; buttons that add more. On the panels the same changes are lines that can be dragged. */
import type { ComponentChildren } from "preact";
import { change, state } from "../state/state";
import { Button, refocus } from "../ui";
import { added, ended, type Happening, happenings, type Kind, moved, parse, removed, seconds, timeText, titleOf, valued } from "./changes";

const ADDITIONS: readonly { kind: Kind; title: string }[] = [
  { kind: "rate", title: "Rate step" },
  { kind: "handover", title: "Handover" },
  { kind: "outage", title: "Outage" },
];

/** `end`: how long the run is, s. */
export function Timeline({ end }: { end: number }) {
  const texts = state.value.changes;
  const there = happenings(texts);
  const set = (changes: string[]) => change({ changes });
  const remove = (event: MouseEvent, changes: string[]) => {
    refocus((event.currentTarget as Element).closest("section"));
    set(changes);
  };
  const unread = texts.flatMap((text, place) => (parse(text) ? [] : [{ text, place }]));
  return (
    <section class="timeline" aria-label="Changes of the path">
      <div class="timeline-add" role="group" aria-label="Add a change of the path">
        <span class="name">Change the path during the run:</span>
        {ADDITIONS.map(({ kind, title }) => {
          const missing = kind === "rate" && !hasBottleneck();
          return (
            <Button key={kind} disabled={missing} onClick={() => set(added(texts, kind, freePlace(there, end), valueFor(kind)))}>
              Add {title.toLowerCase()}
            </Button>
          );
        })}
        {!hasBottleneck() && <span class="note">The path has no rate that could change.</span>}
      </div>
      {texts.length > 0 && (
        <ul class="timeline-rows">
          {unread.map(({ text, place }) => (
            <li key={`text ${place}`}>
              <Entry
                label={`change ${place + 1} as text`}
                before="change"
                text={text}
                take={(now) => set(texts.map((each, i) => (i === place ? now : each)))}
              />
              <Button
                kind="quiet"
                label={`Remove change ${place + 1}`}
                onClick={(event) =>
                  remove(
                    event,
                    texts.filter((_, i) => i !== place),
                  )
                }
              >
                Remove
              </Button>
            </li>
          ))}
          {there.map((each, place) => (
            <li key={place}>
              <span class="what">
                {TITLES[each.kind]}
                {each.kind === "other" || each.kind === "outage" ? ` ${each.where}` : ""}
              </span>
              <Entry
                label={`time of ${titleOf(each)}`}
                before="at"
                text={timeText(each.at)}
                take={(text) => timed(text, (at) => set(moved(texts, each, at, end)))}
              />
              {each.until !== null && (
                <Entry
                  label={`end of ${titleOf(each)}`}
                  before="until"
                  text={timeText(each.until)}
                  take={(text) => timed(text, (at) => set(ended(texts, each, at, end)))}
                />
              )}
              {each.values.map(([name, value]) => (
                <Entry
                  key={name}
                  label={`${name} after ${titleOf(each)}`}
                  before={name}
                  text={value}
                  take={(text) => set(valued(texts, each, name, text))}
                />
              ))}
              <Button kind="quiet" label={`Remove ${titleOf(each)}`} onClick={(event) => remove(event, removed(texts, each))}>
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const TITLES: Record<Kind, string> = { rate: "Rate step", handover: "Handover", outage: "Outage", other: "Change" };

function Entry({ label, before, text, take }: { label: string; before: ComponentChildren; text: string; take: (text: string) => void }) {
  return (
    <label class="timeline-entry">
      <span class="name">{before}</span>
      <input
        class="input"
        value={text}
        aria-label={label}
        spellcheck={false}
        autocomplete="off"
        size={8}
        onChange={(event) => event.currentTarget.value.trim() && take(event.currentTarget.value.trim())}
      />
    </label>
  );
}

function timed(text: string, take: (at: number) => void): void {
  const at = seconds(text);
  if (at !== null) take(at);
}

function hasBottleneck(): boolean {
  return Boolean(state.value.rate || state.value.words.bottleneck);
}

/** A time for something new: the middle of the largest gap. */
export function freePlace(there: readonly Happening[], end: number): number {
  const places = [0, ...there.flatMap((each) => [each.at, each.until ?? each.at]), end].sort((one, other) => one - other);
  let [best, length] = [end / 2, 0];
  places.slice(1).forEach((to, i) => {
    const from = places[i] as number;
    if (to - from > length) [best, length] = [(from + to) / 2, to - from];
  });
  return Number(best.toPrecision(2));
}

/** A value that shows something: half of the rate, a longer delay. */
function valueFor(kind: Kind): string {
  if (kind === "rate") return scaled(state.value.rate, 0.25) || "5mbit";
  return kind === "handover" ? scaled(state.value.rtt, 1) || "50ms" : "";
}

/** A quantity with its unit times a factor; empty where it is none. */
function scaled(text: string, factor: number): string {
  const match = /^([0-9.]+)\s*([a-zA-Z]+)$/.exec(text.trim());
  return match ? `${Number((Number(match[1]) * factor).toPrecision(3))}${match[2]}` : "";
}
