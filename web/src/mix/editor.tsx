/** The flows that share the bottleneck, a row for each group: congestion control, how many, from when, until when. */
import { start } from "../server/start";
import { change, state } from "../state/state";
import { Button, refocus } from "../ui";
import { type Group, group as one, parse, write } from "./grammar";

/** Most flows of a group that can be typed. */
const MOST = 200;

export function Editor() {
  const groups = parse(state.value.mix);
  const set = (next: readonly Group[]) => change({ mix: write(next) });
  const known = [...new Set([...state.value.cca, ...(start.value?.controls ?? []).map((each) => each.name)])];
  const put = (place: number, fields: Partial<Group>) => set((groups ?? []).map((each, i) => (i === place ? { ...each, ...fields } : each)));
  const remove = (event: MouseEvent, place: number) => {
    refocus((event.currentTarget as Element).closest("section"));
    set((groups ?? []).filter((_, i) => i !== place));
  };
  return (
    <section class="mix-editor" aria-label="Flows that share the bottleneck">
      {groups?.map((group, place) => (
        <div class="mix-row" role="group" aria-label={`Flows ${place + 1}`} key={place}>
          <label>
            <span class="name">control</span>
            <select class="input" value={group.cca} onChange={(event) => put(place, { cca: event.currentTarget.value })}>
              {(known.includes(group.cca) ? known : [group.cca, ...known]).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span class="name">flows</span>
            <input
              class="input number"
              type="number"
              min={1}
              max={MOST}
              value={group.count}
              onChange={(event) => put(place, { count: Math.min(MOST, Math.max(1, Math.round(Number(event.currentTarget.value)) || 1)) })}
            />
          </label>
          <label>
            <span class="name">data</span>
            <select class="input" value={group.up ? "up" : "down"} onChange={(event) => put(place, { up: event.currentTarget.value === "up" })}>
              <option value="down">down</option>
              <option value="up">up</option>
            </select>
          </label>
          <Time name="own RTT" text={group.rtt} empty="the path's" take={(text) => put(place, { rtt: text.replace(/[~@*]/g, "") })} />
          {state.value.links.length > 0 && (
            <>
              <Time name="enter at" text={group.enter} empty="the first" take={(text) => put(place, { enter: text.replace(/[~@*]/g, "") })} />
              <Time name="leave at" text={group.leave} empty="the last" take={(text) => put(place, { leave: text.replace(/[~@*]/g, "") })} />
            </>
          )}
          <Time name="from" text={group.start} empty="the start" take={(text) => put(place, { start: text })} />
          <Time name="until" text={group.stop} empty="the end" take={(text) => put(place, { stop: text })} />
          <Button kind="quiet" label={`Remove flows ${place + 1}, ${group.cca}`} onClick={(event) => remove(event, place)}>
            Remove
          </Button>
        </div>
      ))}
      {groups === null && (
        <label class="mix-row">
          <span class="name">the mixture as text</span>
          <input class="input wide" value={state.value.mix} onChange={(event) => change({ mix: event.currentTarget.value.trim() })} />
        </label>
      )}
      <div class="mix-row">
        <Button onClick={() => set([...(groups ?? []), one(next(groups ?? []))])}>Add flows</Button>
        <Button kind="quiet" onClick={() => change({ mix: "" })}>
          Leave the mixture
        </Button>
      </div>
    </section>
  );
}

/** A control that is not in the mixture yet: one of the state's. */
function next(groups: readonly Group[]): string {
  const there = groups.map((each) => each.cca);
  return state.value.cca.find((each) => !there.includes(each)) ?? state.value.cca[0] ?? "cubic";
}

function Time({ name, text, empty, take }: { name: string; text: string; empty: string; take: (text: string) => void }) {
  return (
    <label>
      <span class="name">{name}</span>
      <input
        class="input"
        value={text}
        placeholder={empty}
        size={7}
        spellcheck={false}
        autocomplete="off"
        onChange={(event) => take(event.currentTarget.value.replace(/[\s,-]/g, ""))}
      />
    </label>
  );
}
