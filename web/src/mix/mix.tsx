/** The view "Shared bottleneck": how the flows of a mixture share the path, over time in one run and over many seeds. */
import { computed, effect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "../inside/inside.css";
import "./mix.css";
import type { Range } from "../charts/description";
import { keepWithin, link } from "../charts/links";
import { format } from "../charts/units";
import { StackFiles } from "../inside/files";
import { look } from "../controls/look";
import { seedOf, SEEDS, Seeds } from "../inside/seeds";
import { Stack } from "../inside/stack";
import { short, valueTable } from "../inside/values";
import type { Verdict } from "../server/contract";
import { question } from "../server/question";
import { change, choose, option, state } from "../state/state";
import { Button, Disclosure, Sample, Table } from "../ui";
import { members, panelsOf, type Sharing, sharesOf, verdictOf } from "./data";
import { Editor } from "./editor";
import { Groups, together } from "./groups";
import { group, write } from "./grammar";

const asked = question("mix");
const seed = option("mix.seed", "0");
const time = link("mix");
const shares = computed(() => sharesOf(asked.blocks.value));
const verdict = computed(() => verdictOf(asked.blocks.value));
const all = computed(() => (shares.value ? members(shares.value, look) : []));
const panels = computed(() => (shares.value ? panelsOf(shares.value, all.value) : []));

/** Asks while the view is there and there is a mixture. */
function follow(): () => void {
  const stop = effect(() => {
    if (state.value.mix) asked.ask({ seed: seedOf(seed.value), seeds: SEEDS });
  });
  const stay = effect(() => {
    if (shares.value) keepWithin(time, [0, end(shares.value)]);
  });
  return () => {
    stop();
    stay();
    asked.cancel();
  };
}

export function Mix() {
  useEffect(follow, []);
  const there = shares.value;
  if (!state.value.mix) return <Empty />;
  return (
    <div class="inside-view">
      <p class={asked.error.value ? "mix-answer inside-problem" : "mix-answer"} aria-live="polite" aria-busy={isBusy()}>
        {asked.error.value || (verdict.value ? together(verdict.value) : "…")}
      </p>
      <p class="note">{status(verdict.value)}</p>
      <Editor />
      {there && (
        <>
          <Seeds now={there.seed} go={(to) => choose("mix.seed", String(to))} label="Run that is shown over time" />
          <ul class="mix-legend">
            {all.value.map(({ label, look, mean_bps: mean }) => (
              <li key={label}>
                <Sample look={look} width={2} />
                <span>{label}</span>
                <span class="value">{Number.isFinite(mean) ? format(mean, "rate") : ""}</span>
              </li>
            ))}
          </ul>
          <Stack
            panels={panels.value}
            marks={[]}
            whole={[0, end(there)]}
            link={time}
            eventsAt={() => ""}
            nextEvent={(from, direction) => turn(there, from, direction)}
          />
          {verdict.value && <Groups said={verdict.value} />}
          <Disclosure title="Table of the values over time">{() => <Values shown={time.range.value ?? [0, end(there)]} />}</Disclosure>
          <StackFiles
            name="shared-bottleneck"
            title="the shares over time"
            lines={all.value}
            panels={panels.value}
            marks={[]}
            whole={[0, end(there)]}
            link={time}
            table={() => table(there)}
          />
        </>
      )}
    </div>
  );
}

function isBusy(): boolean {
  return asked.status.value === "asked" || asked.status.value === "running";
}

/** How many runs stand behind the sentence; beside an error, what is below it. */
function status(said: Verdict | null): string {
  if (!said) return "\u00a0";
  return asked.error.value ? "What is shown below is the mixture before." : `${said.n} of ${said.wanted} runs.`;
}

/** What the view is about where no flows share anything yet. */
function Empty() {
  const begin = write(state.value.cca.slice(0, 2).map(group));
  return (
    <div class="inside-view">
      <p>Each congestion control has the path for itself. Here several flows share its bottleneck, and the page answers who gets how much.</p>
      <p>
        <Button kind="main" onClick={() => change({ mix: begin || "cubic,bbr" })}>
          Let {(begin || "cubic,bbr").replaceAll(",", " and ")} share it
        </Button>
      </p>
    </div>
  );
}

function Values({ shown }: { shown: Range }) {
  const { columns, rows } = valueTable(panels.value, shown);
  return <Table caption="Values over the shown time" columns={columns} rows={() => rows} />;
}

function end({ columns: { t }, every_s }: Sharing): number {
  return t?.at(-1) ?? every_s;
}

/** Where the next flow begins or ends. */
function turn({ flows }: Sharing, from: number, direction: 1 | -1): number | null {
  const turns = flows.flatMap((each) => [each.start_s, each.stop_s]).filter((at) => (at - from) * direction > 1e-6);
  return turns.length ? (direction > 0 ? Math.min(...turns) : Math.max(...turns)) : null;
}

function table({ columns }: Sharing) {
  const names = Object.keys(columns).filter((name) => name !== "t" && name !== "jain");
  const rows = Array.from(columns.t ?? [], (at, i) => [at, ...names.map((name) => columns[name]?.[i] ?? NaN), columns.jain?.[i] ?? NaN].map(short));
  return { columns: ["time (s)", ...names.map((name, i) => `${all.peek()[i]?.label ?? name} (bit/s)`), "Jain's index"], rows };
}
