/** Observation and replay of a flow as charts: goodput, RTT and bytes in flight over the same time. */
import type { Chart, Look, Numbers, Series } from "../charts/description";
import type { Named } from "../server/blocks";
import type { Interval } from "../server/contract";

export interface Looks {
  observed: Look;
  replay: Look;
}

const NAMES = [
  { name: "goodput", title: "Goodput", quantity: "rate", level: "rate", levelled: "bottleneck, fitted", kind: "step" },
  { name: "rtt", title: "RTT", quantity: "time", level: "rtt", levelled: "RTT of the path, fitted", kind: "line" },
  { name: "flight", title: "In flight", quantity: "size", level: "", levelled: "", kind: "line" },
] as const;

/** The charts for which the source or the replay has something. */
export function figures(
  observed: Named<"measure", "observed"> | undefined,
  replay: Named<"measure", "replay"> | undefined,
  levels: Record<string, Interval>,
  looks: Looks,
): Chart[] {
  const seconds = observed?.values.seconds ?? 0;
  return NAMES.flatMap(({ name, title, quantity, level, levelled, kind }) => {
    const series: Series[] = [];
    const [t, y] = [observed?.columns[`${name}.t`], observed?.columns[name]];
    if (t?.length && y) series.push({ label: "observed", look: looks.observed, x: t, y, kind });
    const replayed = replay?.columns[name];
    if (replayed?.length && known(replayed)) {
      const { columns } = replay as Named<"measure", "replay">;
      const label = `replay, ${replay?.values.cca}`;
      series.push({
        label,
        look: looks.replay,
        x: columns.t as Numbers,
        y: replayed,
        low: columns[`${name}.low`] as Numbers,
        high: columns[`${name}.high`] as Numbers,
      });
    }
    const fitted = levels[level];
    if (fitted && series.length) series.push(constant(levelled, fitted, seconds));
    return series.length
      ? [{ title, x: { title: "time", quantity: "time", from: 0, to: seconds }, y: { title, quantity, from: 0 }, series } as Chart]
      : [];
  });
}

/** A fitted value with its interval, all the time. */
function constant(label: string, { value, low, high }: Interval, seconds: number): Series {
  const look = { colour: "#888888", dash: 1, marker: "o" };
  const band = low !== null && high !== null ? { low: [low, low], high: [high, high] } : {};
  return { label, look, x: [0, seconds], y: [value ?? NaN, value ?? NaN], ...band };
}

function known(values: Numbers): boolean {
  return values.some((value: number) => !Number.isNaN(value));
}

/** A stretch of time that one cause held the flow. */
export interface Held {
  begin: number;
  end: number;
  cause: string;
}

/** What held the flow when, in order. */
export function held(limits: Named<"measure", "limits"> | undefined): Held[] {
  const causes = limits?.values.causes ?? [];
  const { begin = [], end = [], cause = [] } = limits?.columns ?? {};
  return Array.from(begin, (from, i) => ({ begin: from, end: end[i] as number, cause: causes[cause[i] as number] ?? "not identifiable" }));
}
