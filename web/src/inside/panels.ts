/** The panels of the view: which quantities there are, and their charts from the runs. */
import type { Chart, Look, Numbers, Series, Span } from "../charts/description";
import type { Quantity } from "../charts/units";
import { STATES } from "../server/contract";
import { counts, type Flow, type Run } from "./data";
import type { Panel, Symbols } from "./stacker";

export interface Choice {
  id: string;
  title: string;
  /** The unit of what is a number. */
  unit?: string;
  quantity: Quantity;
  /** Columns of a flow that are drawn, the first one in full width; or one of the queue. */
  flow?: string[];
  queue?: string;
  height: number;
}

/** Every panel that can be shown, from the top. */
export const CHOICES: readonly Choice[] = [
  { id: "events", title: "Events", quantity: "number", height: 0 },
  { id: "cwnd", title: "Congestion window", unit: "packets", quantity: "number", flow: ["cwnd", "ssthresh"], height: 110 },
  { id: "in_flight", title: "In flight", unit: "packets", quantity: "number", flow: ["in_flight"], height: 80 },
  { id: "rtt", title: "RTT", quantity: "time", flow: ["rtt", "min_rtt"], height: 96 },
  { id: "queue", title: "Bottleneck's queue", unit: "packets", quantity: "number", queue: "packets", height: 80 },
  { id: "backlog", title: "Bottleneck's queue, bytes", quantity: "size", queue: "bytes", height: 80 },
  { id: "sojourn", title: "Delay in the queue", quantity: "time", queue: "sojourn", height: 80 },
  { id: "goodput", title: "Goodput", quantity: "rate", flow: ["goodput"], height: 80 },
  { id: "pacing_rate", title: "Pacing rate", quantity: "rate", flow: ["pacing_rate"], height: 80 },
  { id: "delivery_rate", title: "Delivery rate", quantity: "rate", flow: ["delivery_rate"], height: 80 },
  { id: "rwnd", title: "Receive window", quantity: "size", flow: ["rwnd"], height: 80 },
  { id: "rto", title: "Retransmission timeout", quantity: "time", flow: ["rto"], height: 80 },
];
export const USUAL = "events,cwnd,rtt,queue,goodput";
/** The symbol of each kind of event, everywhere the same. */
export const SHAPES: Record<string, string> = {
  lost: "X",
  retransmits: "o",
  fast_recoveries: "v",
  ecn_reductions: "D",
  rtos: "s",
  undos: "^",
  spurious_retransmits: "d",
  spurious_rtos: "<",
  tlps: ">",
  reord_seen: "h",
};
/** Events that change the window: they stand at the window's line too. */
const AT_WINDOW = ["fast_recoveries", "ecn_reductions", "rtos", "undos"];
const NAMES: Record<string, string> = { ssthresh: "ssthresh", min_rtt: "least RTT" };
const THIN = 1;
/** Most values beside a panel's title: with more lines, the thin ones are left out. */
const MOST_READ = 4;
const ROW = 19;
/** Names that fit beside a row. */
const SHORT: Record<string, string> = {
  lost: "loss",
  retransmits: "resent",
  fast_recoveries: "recovery",
  ecn_reductions: "ECN",
  rtos: "timeout",
  undos: "undo",
  spurious_retransmits: "needless",
  spurious_rtos: "spurious",
  tlps: "probe",
  reord_seen: "reorder",
};
/** Colour of what belongs to no control. */
const BOUND = "#7a858f";
/** How long a bound is drawn, round trips, at least a second. */
const BOUND_RTTS = 20;
/** Pixels by which two runs' symbols stand apart. */
const APART = 6;

/** What one line of a run is called and how it is drawn. */
export interface Drawn {
  run: Run;
  flow: Flow;
  label: string;
  look: Look;
  /** Whether another line has its colour: a pinned scenario, a further flow of a control. Its symbols are hollow. */
  further: boolean;
}

/** The lines of the runs: one colour for each control, another dash for each further flow of it and for a pinned scenario. */
export function drawn(runs: readonly Run[], lookOf: (label: string) => Look): Drawn[] {
  const used = new Map<string, number>();
  return runs.flatMap((run) =>
    run.flows.map((flow) => {
      const place = used.get(flow.cca) ?? 0;
      used.set(flow.cca, place + 1);
      const look = lookOf(flow.cca);
      const same = run.flows.filter((each) => each.cca === flow.cca).length > 1;
      const label = `${flow.cca}${same ? ` ${run.flows.filter((each) => each.cca === flow.cca).indexOf(flow) + 1}` : ""}${run.pinned ? " (pinned)" : ""}`;
      return { run, flow, label, look: { colour: look.colour, marker: look.marker, dash: (look.dash + place) % 4 }, further: place > 0 };
    }),
  );
}

/** The panels with these names. */
export function panelsOf(names: readonly string[], lines: readonly Drawn[]): Panel[] {
  const runs = [...new Set(lines.map((each) => each.run))];
  return CHOICES.filter(({ id }) => names.includes(id)).flatMap((choice) => {
    if (choice.id === "events") return [events(lines)];
    const series = choice.flow
      ? lines.flatMap((line) => flowSeries(line, choice.flow as string[]))
      : runs.flatMap((run) => queueSeries(run, choice, lines));
    if (!series.length) return [];
    if (choice.id === "rtt") series.push(...bounds(runs));
    const chart: Chart = {
      title: choice.title,
      x: { title: "time", quantity: "time" },
      y: { title: choice.unit ?? choice.title, quantity: choice.quantity },
      series,
      spans: choice.id === "cwnd" ? lines.flatMap(spans) : [],
    };
    const symbols =
      choice.id === "cwnd" ? lines.flatMap((line) => symbolsOf(line, (kind, i) => (AT_WINDOW.includes(kind) ? windowAt(line, i) : null), 0)) : [];
    const main = series.filter((each) => each.width !== THIN);
    return [{ id: choice.id, chart, height: choice.height, symbols, ...(main.length > MOST_READ / 2 ? { readings: main } : {}) }];
  });
}

function flowSeries({ flow, label, look }: Drawn, names: readonly string[]): Series[] {
  return names.flatMap((name, place) => {
    const [x, y] = [flow.columns[name === "goodput" ? "goodput.t" : "t"], flow.columns[name]];
    if (!x || !y || !y.some((value) => value === value)) return [];
    const thin = place ? { width: THIN, look: { ...look, dash: 1 } } : { look, width: 1.75 };
    return [
      { label: place ? `${label}, ${NAMES[name] ?? name}` : label, x, y, kind: name === "goodput" ? "line" : "step", ...thin } satisfies Series,
    ];
  });
}

function queueSeries(run: Run, { queue }: Choice, lines: readonly Drawn[]): Series[] {
  const own = lines.filter((each) => each.run === run);
  const [x, y] = [run.queue?.t, run.queue?.[queue ?? ""]];
  const line = own[0];
  if (!line || !x || !y) return [];
  const label = own.length > 1 ? `all flows${run.pinned ? " (pinned)" : ""}` : line.label;
  const look = own.length > 1 ? { ...line.look, colour: BOUND, dash: run.pinned ? 1 : 0 } : line.look;
  return [{ label, x, y, kind: "step", look, width: 1.75 }];
}

/** A line at the height that the RTT reaches at least after each drop of the bottleneck's rate. */
function bounds(runs: readonly Run[]): Series[] {
  const first = runs.find((run) => !run.pinned);
  return (first?.bounds ?? []).flatMap((bound) => {
    if (!first) return [];
    const until = Math.min(first.duration_s, bound.at_s + Math.max(1, BOUND_RTTS * bound.d_s));
    const height = bound.d_s + bound.spike_s;
    return [
      {
        label: "bound after the drop",
        x: [bound.at_s, until],
        y: [height, height],
        look: { colour: BOUND, dash: 1, marker: "o" },
        width: 2,
      } satisfies Series,
    ];
  });
}

/** Recoveries and timeouts of a line, shaded. */
function spans({ run, flow, look }: Drawn): Span[] {
  const { "span.from": from, "span.to": to, "span.state": state, "span.flow": of } = run.marks;
  if (!from || !to || !state || !of) return [];
  return Array.from(from, (begin, i) => ({
    from: begin,
    to: to[i] as number,
    label: STATES[state[i] as number] ?? "",
    colour: look.colour,
    flow: of[i],
  })).filter((each) => each.flow === flow.flow);
}

function windowAt({ run }: Drawn, place: number): number {
  return run.marks.cwnd?.[place] as number;
}

/** Symbols of a line's events by kind; `heightOf` says where one stands, null nowhere. */
function symbolsOf(line: Drawn, heightOf: (kind: string, place: number) => number | null, shift: number): Symbols[] {
  const { t, kind, flow } = line.run.marks;
  if (!t || !kind || !flow) return [];
  return line.run.kinds.flatMap(({ name }, number) => {
    const [times, heights]: [number[], number[]] = [[], []];
    for (let i = 0; i < t.length; i += 1) {
      if (kind[i] !== number || flow[i] !== line.flow.flow) continue;
      const height = heightOf(name, i);
      if (height === null) break;
      times.push(t[i] as number);
      heights.push(height);
    }
    return times.length
      ? [
          {
            t: Float32Array.from(times),
            y: Float32Array.from(heights),
            shape: SHAPES[name] ?? "o",
            colour: line.look.colour,
            hollow: line.further,
            shift,
          },
        ]
      : [];
  });
}

/** A row for each kind of event that happened, with the symbols of every run. */
function events(lines: readonly Drawn[]): Panel {
  const kinds = lines[0]?.run.kinds ?? [];
  const sums = [...new Set(lines.map((each) => each.run))].map(counts);
  const there = kinds.filter((_, i) => sums.some((each) => (each[i] ?? 0) > 0));
  const row = new Map(there.map(({ name }, i) => [name, there.length - 1 - i]));
  const symbols = lines.flatMap((line, i) =>
    symbolsOf(line, (kind) => row.get(kind) ?? null, lines.length > 1 ? (i - (lines.length - 1) / 2) * APART : 0),
  );
  const empty: Numbers = [];
  const chart: Chart = {
    title: "Events",
    x: { title: "time", quantity: "time" },
    y: { title: "", quantity: "number", from: -0.7, to: Math.max(there.length, 1) - 0.3 },
    series: [{ label: "", x: empty, y: empty, look: { colour: BOUND, dash: 0, marker: "o" } }],
  };
  return {
    id: "events",
    chart,
    height: Math.max(1, there.length) * ROW,
    symbols,
    rows: there.map(({ name, title }) => SHORT[name] ?? title).reverse(),
  };
}
