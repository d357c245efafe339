/** The view `curves`: metrics of the congestion controls along one axis of the path, with intervals, single runs, and where the sliders are. */
import { computed, effect, signal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hereOn, textOf, titled, words } from "../axes/axes";
import type { Mark } from "../charts/description";
import { ChartExports } from "../charts/exports";
import { keepWithin, link } from "../charts/links";
import { Plot } from "../charts/plot";
import { look } from "../controls/look";
import { type AxisDocument, METRICS } from "../server/contract";
import { question } from "../server/question";
import { start } from "../server/start";
import { change, choose, option, state } from "../state/state";
import { Button, type Column, DataTable, Progress, Select, Space, Status, Toggle, Toolbar } from "../ui";
import { subject, whole } from "./asking";
import { chartOf, LEAST_RUNS, withAll } from "./chart";
import { type Curve, gather, type Metric } from "./gather";
import "./curves.css";

const curve = question("curve");
const axis = option("curves.axis", "jitter");
const metrics = option("curves.metrics", "goodput");
const seeds = option("curves.seeds", "10");
const bands = option("curves.bands", "yes");
const runs = option("curves.runs", "yes");
const log = option("curves.log", "no");
const shared = link("curves");

/** What the answer is about, and the text that the state had when it was asked. */
const asked = signal({ subject: "", here: "" });
const SEEDS = ["3", "5", "10", "20", "40"];
const [ONE, SEVERAL] = [360, 240];

const now = computed(() => gather(curve.blocks.value));
let kept: Curve | null = null;

/** The curve of what was asked before, as long as the new one has not got everywhere. */
const before = computed(() => {
  const there = now.value;
  if (!there) return null;
  if (there.complete === there.x.length) {
    kept = there;
    return null;
  }
  return kept && kept.axis.axis === there.axis.axis ? kept : null;
});

/** Where the sliders are; null where that is no number. */
const here = computed(() => {
  const there = now.value;
  return there ? hereOn(there.axis, asked.value.here, textOf(there.axis.axis, state.value)) : null;
});

export function CurvesView() {
  useSignalEffect(() => {
    // The levels lie around the sliders' place: a stretch that was zoomed into may not be among the new ones.
    const x = now.value?.x;
    if (x && x.length > 1) keepWithin(shared, [x[0] as number, x[x.length - 1] as number]);
  });
  useEffect(() => {
    const end = effect(ask); // at once with the slider: `useSignalEffect` waits for the next frame to be drawn
    for (const name of ENDS) window.addEventListener(name, hurry);
    return () => {
      end();
      for (const name of ENDS) window.removeEventListener(name, hurry);
      leave();
    };
  }, []);
  const there = now.value;
  const problem = curve.error.value || (there?.axis.note && `${titled(there.axis)}: ${there.axis.note}.`);
  return (
    <section aria-label="Curves">
      <Choices />
      {there && !problem && <Progress done={there.done} all={there.total} label="runs" />}
      {problem ? (
        <Status kind="problem">{problem}</Status>
      ) : there ? (
        <Plots curve={there} />
      ) : (
        <Status kind="working">The first runs are on their way …</Status>
      )}
    </section>
  );
}

/**
 * While a slider moves, a question is left this long to bring its first points before the next one ends it, ms: the curve then follows the slider, and the
 * last place of the slider is asked for all the same.
 */
const PACE = 45;
/** What ends a movement: nothing is waited for then. */
const ENDS = ["pointerup", "keyup", "change"] as const;
let [sent, later] = [-Infinity, 0];

/** Asks where what is asked has changed, or the state has left what is shown. */
function ask(): void {
  const [name, wanted] = [axis.value, { axis: axis.value, seeds: whole(seeds.value) }];
  const text = textOf(name, state.value);
  const about = subject(state.value, [name], wanted);
  clearTimeout(later);
  later = 0;
  if (!state.value.rtt || (about === asked.peek().subject && curve.status.peek() !== "failed" && inside(text))) return;
  const wait = sent + PACE - performance.now();
  if (wait > 0 && (curve.status.peek() === "asked" || now.peek()?.most === 0)) {
    later = window.setTimeout(ask, wait);
    return;
  }
  sent = performance.now();
  if (now.peek()?.axis.axis !== name) shared.range.value = shared.cursor.value = null;
  asked.value = { subject: about, here: text };
  curve.ask(wanted);
}

function leave(): void {
  clearTimeout(later);
  if (curve.status.peek() === "asked" || curve.status.peek() === "running") {
    curve.cancel();
    asked.value = { ...asked.peek(), subject: "" };
  }
}

/** Asks now what waits to be asked. */
function hurry(): void {
  if (!later) return;
  sent = -Infinity;
  ask();
}

/** Whether the curve that is there, or on its way, has this place. */
function inside(text: string): boolean {
  if (text === asked.peek().here) return true;
  const there = now.peek();
  const at = there && hereOn(there.axis, asked.peek().here, text);
  return there !== null && at !== null && at >= (there.x[0] as number) && at <= (there.x[there.x.length - 1] as number);
}

/** The metrics that are shown: the first one where the address names none that there is. */
function chosenMetrics(): Metric[] {
  const chosen = METRICS.filter((each) => metrics.value.split("|").includes(each.name));
  return chosen.length ? chosen : METRICS.slice(0, 1);
}

function Choices() {
  const axes = start.value?.axes ?? [];
  const chosen = chosenMetrics().map((each) => each.name);
  const toggle = (name: string) => {
    const next = METRICS.map((each) => each.name).filter((each) => (each === name ? !chosen.includes(name) : chosen.includes(each)));
    choose("curves.metrics", next.join("|") || name);
  };
  return (
    <Toolbar label="Curves">
      <Select
        label="Along"
        value={axis.value}
        choices={axes.map((each) => ({ value: each.axis, title: titled(each) }))}
        onChoose={(name) => choose("curves.axis", name)}
      />
      <span class="metrics" role="group" aria-label="Metrics">
        {METRICS.map((each) => (
          <Button key={each.name} pressed={chosen.includes(each.name)} onClick={() => toggle(each.name)}>
            {SHORT[each.name] ?? each.title}
          </Button>
        ))}
      </span>
      <Space />
      <Select label="Runs per point" value={seeds.value} choices={SEEDS} onChoose={(count) => choose("curves.seeds", count)} />
    </Toolbar>
  );
}

/** What is drawn beside the lines. */
function Looks() {
  return (
    <>
      <Toggle label="Intervals" on={bands.value === "yes"} onChange={(on) => choose("curves.bands", on ? "yes" : "no")} />
      <Toggle label="Single runs" on={runs.value === "yes"} onChange={(on) => choose("curves.runs", on ? "yes" : "no")} />
      <Toggle label="Logarithmic" on={log.value === "yes"} onChange={(on) => choose("curves.log", on ? "yes" : "no")} />
    </>
  );
}

const SHORT: Record<string, string> = { goodput: "Goodput", rtt: "RTT", retransmissions: "Retransmissions", cv: "CV", delay: "Delay added" };

function Plots({ curve: there }: { curve: Curve }) {
  const chosen = chosenMetrics();
  const shown = { bands: bands.value === "yes", runs: runs.value === "yes", log: log.value === "yes" };
  const move = (value: number) => change({ [there.axis.axis]: words(there.axis, there.x, value) });
  const mark: Mark[] = here.value === null ? [] : [{ id: "here", at: here.value, label: "you are here", kind: "here", onMove: move }];
  const names = there.labels;
  return (
    <>
      {chosen.map((metric, i) => {
        const chart = chartOf(there, before.value, metric, look, shown, mark);
        return (
          <div key={metric.name} class="curve">
            <Plot
              chart={chart}
              link={shared}
              height={chosen.length > 1 ? SEVERAL : ONE}
              legend={i === chosen.length - 1 || chosen.length < 3}
              onPick={move}
            />
            <div class="toolbar below">
              {i === 0 && <p class="note">{counted(there)}</p>}
              <Space />
              {i === 0 && <Looks />}
              <ChartExports name={`${metric.name}-${there.axis.axis}`} chart={chart} shown={shared.range.value} all={withAll(chart, there, metric)} />
            </div>
          </div>
        );
      })}
      <DataTable
        title="Table of these curves"
        caption={`Median and 95 % interval along ${there.axis.title}`}
        columns={columns(there.axis, chosen, names)}
        rows={() => rows(there, chosen)}
      />
    </>
  );
}

/** How many runs stand behind the points. */
function counted(there: Curve): string {
  const faint = before.value ? " Faint: before the last change." : "";
  if (!there.most) return `Running …${faint}`;
  const count = there.least === there.most ? `${there.most}` : `${there.least} to ${there.most}`;
  const known = there.complete < there.x.length ? `, ${there.complete} of ${there.x.length} points so far` : "";
  const interval = there.least >= LEAST_RUNS ? " with its 95 % interval" : "";
  return `Median of ${count} run${there.most === 1 ? "" : "s"} per point${interval}${known}.${faint || " Click the plot to go there, or drag “you are here”."}`;
}

function columns(along: AxisDocument, chosen: readonly Metric[], names: readonly string[]): Column[] {
  const unit = { rate: "Mbit/s", time: "ms", share: "%", number: "" };
  const each = names.flatMap((name) => [
    ...chosen.flatMap((metric) => [{ name: `${name} ${SHORT[metric.name] ?? ""}`, unit: unit[metric.quantity] }, { name: "low" }, { name: "high" }]),
    { name: "runs" },
  ]);
  return [{ name: titled(along), text: true }, ...each];
}

function rows(there: Curve, chosen: readonly Metric[]): (string | number)[][] {
  const factor = { rate: 1e-6, time: 1e3, share: 100, number: 1 };
  return Array.from(there.x, (x, place) => [
    there.axis.words[place] ?? String(x),
    ...there.lines.flatMap((lines) => {
      const at = lines.get("goodput")?.x.indexOf(x) ?? -1;
      const value = (metric: Metric, part: "y" | "low" | "high") => (lines.get(metric.name)?.[part][at] ?? NaN) * factor[metric.quantity];
      return [...chosen.flatMap((metric) => [value(metric, "y"), value(metric, "low"), value(metric, "high")]), lines.get("goodput")?.n[at] ?? NaN];
    }),
  ]);
}
