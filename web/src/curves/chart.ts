/** A curve as a chart. */
import { chartAxis } from "../axes/axes";
import type { Chart, Look, Mark, Series } from "../charts/description";
import type { Curve, Line, Metric } from "./gather";

/** What the reader chose to see. */
export interface Shown {
  bands: boolean;
  runs: boolean;
  log: boolean;
}

/** The chart of one metric. `before` is the curve of what was asked before, where this one has not got everywhere yet. */
export function chartOf(curve: Curve, before: Curve | null, metric: Metric, look: (label: string) => Look, shown: Shown, marks: Mark[]): Chart {
  const x = chartAxis(curve.axis, curve.x);
  return {
    title: `${metric.title} against ${curve.axis.title}`,
    x: { ...x, ...ends(curve.x, before) },
    y: { title: metric.title, quantity: metric.quantity, scale: shown.log ? "log" : "linear" },
    series: curve.lines.map((lines, i) => series(lines.get(metric.name), curve.labels[i] ?? "", look(curve.labels[i] ?? ""), shown)),
    before: (before?.lines ?? []).map((lines, i) => ({
      x: lines.get(metric.name)?.x ?? [],
      y: lines.get(metric.name)?.y ?? [],
      label: before?.labels[i] ?? "",
      look: look(before?.labels[i] ?? ""),
    })),
    marks,
  };
}

/** The same chart with every interval, for the CSV. */
export function withAll(chart: Chart, curve: Curve, metric: Metric): Chart {
  return { ...chart, series: chart.series.map((each, i) => ({ ...each, ...pick(curve.lines[i]?.get(metric.name)) })) };
}

function pick(line: Line | undefined): { low: number[]; high: number[] } {
  const { low, high } = gapped(line);
  return { low, high };
}

const NOTHING: Line = { x: [], y: [], low: [], high: [], n: [], place: [], strip: { x: [], y: [] } };

/** The line with a gap wherever a place between two of its points has not run: only neighbours are joined. */
export function gapped(line: Line = NOTHING): Line {
  const open: Line = { x: [], y: [], low: [], high: [], n: [], place: [], strip: line.strip };
  line.place.forEach((place, i) => {
    const before = line.place[i - 1] ?? place;
    if (place - before > 1) {
      open.x.push(((line.x[i - 1] as number) + (line.x[i] as number)) / 2);
      open.place.push((before + place) / 2);
      for (const name of ["y", "low", "high", "n"] as const) open[name].push(NaN);
    }
    for (const name of ["x", "y", "low", "high", "n", "place"] as const) open[name].push(line[name][i] as number);
  });
  return open;
}

/** The axis is as long as its levels from the first block on, so that nothing moves while they come in. */
function ends(x: Float64Array, before: Curve | null): { from?: number; to?: number } {
  const places = [...x, ...(before?.x ?? [])];
  return x.length > 1 ? { from: Math.min(...places), to: Math.max(...places) } : {};
}

function series(of: Line | undefined, label: string, look: Look, shown: Shown): Series {
  const line = gapped(of);
  return {
    x: line.x,
    y: line.y,
    n: line.n,
    label,
    look,
    markers: true,
    ...(shown.bands ? { low: banded(line, line.low), high: banded(line, line.high) } : {}),
    ...(shown.runs ? { strip: line.strip } : {}),
  };
}

/** Fewest runs of a point that has a band: with fewer the interval covers the plot and says nothing. */
export const LEAST_RUNS = 5;

function banded(line: Line, ends: number[]): number[] {
  return ends.map((end, i) => ((line.n[i] as number) >= LEAST_RUNS ? end : NaN));
}
