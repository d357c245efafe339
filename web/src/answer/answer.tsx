/** The answer first: one sentence with its interval, each congestion control's interval on one scale, and what it rests on. */
import "./answer.css";
import { computed, effect, signal } from "@preact/signals";
import { look } from "../controls/look";
import type { AnswerValues, ControlAnswer } from "../server/contract";
import { question } from "../server/question";
import { choose, option, state } from "../state/state";
import { Button, Disclosure, Progress, Sample } from "../ui";

const STANDARD_RUNS = 20;
const MOST_RUNS = 200;
const answer = question("answer");
const runs = option("runs", String(STANDARD_RUNS));
const SIDES = { before: "before its cliff", past: "past its cliff", on: "on its cliff" } as const;

/** Runs of each congestion control that the answer is asked for: those of the address where these make sense. */
export const wantedRuns = computed(() => {
  const seeds = Math.round(Number(runs.value));
  return seeds >= 1 && seeds <= MOST_RUNS ? seeds : STANDARD_RUNS;
});

effect(() => {
  if (state.value.rtt !== undefined) answer.ask({ seeds: wantedRuns.value });
});

/** The newest answer; an older one stays until the first run of the new one is over. */
const newest = signal<AnswerValues | null>(null);
effect(() => {
  const last = answer.blocks.value.at(-1);
  if (last) newest.value = last.values;
});

/** `isAside`: below a view that has a headline of its own. */
export function AnswerPanel({ isAside = false }: { isAside?: boolean }) {
  const now = answer.error.value ? null : newest.value;
  const isBusy = answer.status.value === "asked" || answer.status.value === "running";
  const caveats = now?.caveats ?? [];
  const stale = answer.status.value === "asked" ? " stale" : "";
  return (
    <section class={`answer${stale}${isAside ? " beside" : ""}`} aria-label="Answer">
      <h2 class={isAside ? undefined : "hidden"}>{isAside ? "For the path of the sliders" : "Answer"}</h2>
      <div class="said" aria-live="polite" aria-atomic="true" aria-busy={isBusy}>
        {answer.error.value ? (
          <p class="problem">{answer.error.value}</p>
        ) : (
          <p class="sentence">{now?.text ?? "The first runs are on their way …"}</p>
        )}
      </div>
      <div class="runs-bar">{isBusy && <Progress done={now?.n ?? 0} all={now?.wanted ?? STANDARD_RUNS} label="runs" />}</div>
      <Intervals controls={now?.controls ?? (state.value.cca ?? []).map(unknown)} />
      <p class="foot">
        {now && <span>{counted(now)}</span>}
        {now && !now.decided && now.final && (
          <span class="undecided">
            Undecided{now.more_text && `: ${now.more_text} would probably decide`}
            {now.more !== null && now.wanted < MOST_RUNS && (
              <Button onClick={() => choose("runs", String(Math.min(MOST_RUNS, now.wanted + Math.max(5, now.more ?? 0))))}>Run them</Button>
            )}
          </span>
        )}
      </p>
      <Disclosure title={`What it assumes${caveats.length ? `, and ${caveats.length === 1 ? "a caveat" : `${caveats.length} caveats`}` : ""}`}>
        {() => (
          <ul class="assumes">
            {now?.assumes.map((line) => (
              <li key={line}>{line}</li>
            ))}
            {caveats.map((line) => (
              <li key={line} class="caveat">
                Caveat: {line}
              </li>
            ))}
          </ul>
        )}
      </Disclosure>
    </section>
  );
}

/** `10 of 20 runs of each`; of a mixture, in which all of them run together, `10 of 20 runs`. */
function counted({ n, wanted }: AnswerValues): string {
  const each = state.value.mix || state.value.cca.length < 2 ? "" : " of each";
  return n < wanted ? `${n} of ${wanted} runs${each}` : `${n} ${n === 1 ? "run" : "runs"}${each}`;
}

/** A congestion control before its first run is over: its row keeps its place. */
function unknown(label: string): ControlAnswer {
  return { label, value: null, low: null, high: null, text: "…", side: null, side_text: "" };
}

/** Each congestion control's mean goodput with its interval, all on one scale from 0. */
function Intervals({ controls }: { controls: ControlAnswer[] }) {
  const most = Math.max(...controls.map((each) => Math.max(each.high ?? 0, each.value ?? 0)), Number.MIN_VALUE);
  const at = (value: number) => `${(100 * Math.max(0, Math.min(value, most))) / most}%`;
  return (
    <ul class="intervals" aria-label="Mean goodput of each">
      {controls.map((each) => {
        const { colour } = look(each.label);
        const [low, high] = [each.low ?? each.value ?? 0, each.high ?? each.value ?? 0];
        return (
          <li key={each.label}>
            <span class="who">
              <Sample look={look(each.label)} /> {each.label}
            </span>
            <span class="scale" aria-hidden="true">
              {each.value !== null && <span class="whisker" style={{ left: at(low), width: `calc(${at(high)} - ${at(low)})`, background: colour }} />}
              {each.value !== null && <span class="dot" style={{ left: at(each.value), background: colour }} />}
            </span>
            <span class="number">{each.text}</span>
            <span class={`side ${each.side ?? ""}`} title={each.side_text}>
              {each.side ? SIDES[each.side] : ""}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
