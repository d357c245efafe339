/** The blocks of the question `curve` as what a chart needs: for each congestion control and metric the values along the axis, with single runs. */
import type { Block } from "../server/blocks";
import { type AxisDocument, METRICS } from "../server/contract";

/** A metric of a curve: its name in blocks, its title, and its quantity. */
export type Metric = (typeof METRICS)[number];

/** The values of one congestion control in one metric, ascending along the axis; only places that have run. */
export interface Line {
  x: number[];
  y: number[];
  low: number[];
  high: number[];
  n: number[];
  /** Which of the axis' places each is. */
  place: number[];
  strip: { x: number[]; y: number[] };
}

export interface Curve {
  axis: AxisDocument;
  /** The congestion controls, by their number in blocks. */
  labels: readonly string[];
  x: Float64Array;
  /** control → metric → line. */
  lines: Map<string, Line>[];
  /** Fewest and most runs of the places that have run. */
  least: number;
  most: number;
  /** Places that have run under every congestion control. */
  complete: number;
  done: number;
  total: number;
}

/** What the blocks say so far; null before the axis is known. */
export function gather(blocks: readonly Block<"curve">[]): Curve | null {
  const head = blocks.find((block) => block.name === "axis");
  if (!head) return null;
  const axis = head.values;
  const labels = axis.controls;
  const controls = labels.length;
  const x = (head.columns.x as Float64Array | undefined) ?? new Float64Array();
  const rows = newest(blocks, controls, x.length);
  const lines = Array.from({ length: controls }, (_, control) => linesOf(blocks, rows, control, x));
  const counts = [...rows.values()].map((row) => row.n ?? 0);
  const progress = blocks.findLast((block) => block.name === "progress")?.values;
  return {
    axis,
    labels,
    x,
    lines,
    least: counts.length ? Math.min(...counts) : 0,
    most: Math.max(0, ...counts),
    complete: Array.from(x).filter((_, at) => Array.from({ length: controls }, (_, control) => rows.has(at * controls + control)).every(Boolean))
      .length,
    done: progress?.done ?? 0,
    total: progress?.total ?? 0,
  };
}

/** The newest row of each place and control. */
function newest(blocks: readonly Block<"curve">[], controls: number, places: number): Map<number, Record<string, number>> {
  const rows = new Map<number, Record<string, number>>();
  for (const { name, columns } of blocks) {
    if (name !== "points") continue;
    for (let i = 0; i < (columns.place?.length ?? 0); i += 1) {
      const row = Object.fromEntries(Object.entries(columns).map(([key, column]) => [key, column[i] as number]));
      if ((row.place ?? places) < places && (row.control ?? controls) < controls)
        rows.set((row.place as number) * controls + (row.control as number), row);
    }
  }
  return rows;
}

function linesOf(blocks: readonly Block<"curve">[], rows: Map<number, Record<string, number>>, control: number, x: Float64Array): Map<string, Line> {
  const lines = new Map<string, Line>();
  for (const { name } of METRICS) {
    const line: Line = { x: [], y: [], low: [], high: [], n: [], place: [], strip: { x: [], y: [] } };
    const mine = [...rows.values()].filter((row) => row.control === control).sort((one, other) => (one.place as number) - (other.place as number));
    for (const row of mine) {
      line.x.push(x[row.place as number] as number);
      line.y.push(row[name] ?? NaN);
      line.low.push(bounded(row[`${name}.low`]));
      line.high.push(bounded(row[`${name}.high`]));
      line.n.push(row.n ?? NaN);
      line.place.push(row.place as number);
    }
    strip(blocks, name, control, x, line.strip);
    lines.set(name, line);
  }
  return lines;
}

function strip(blocks: readonly Block<"curve">[], metric: string, control: number, x: Float64Array, into: Line["strip"]): void {
  for (const { name, columns } of blocks) {
    const [places, whose, values] = [columns.place, columns.control, columns[metric]];
    if (name !== "runs" || !places || !whose || !values) continue;
    for (let i = 0; i < places.length; i += 1) {
      if (whose[i] !== control) continue;
      into.x.push(x[places[i] as number] ?? NaN);
      into.y.push(values[i] as number);
    }
  }
}

/** An interval's end; an end that is not bounded by so few trials has no place in a band. */
function bounded(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) ? value : NaN;
}
