/** The blocks of the question `map` as a grid: what each cell's number is, what stands for it until it has run, and the line along a level. */
import { contours } from "d3-contour";
import type { Block, Columns } from "../server/blocks";
import type { MapGrid } from "../server/contract";

export interface Grid extends MapGrid {
  /** The values at the cells' centres, SI. */
  xs: Float64Array;
  ys: Float64Array;
  /** By cell, row by row from the lowest y: NaN where it has not run. */
  value: Float64Array;
  low: Float64Array;
  high: Float64Array;
  n: Float64Array;
  /** What is drawn: the cell's own value, or that of the coarse cell that stands for it; NaN where nothing does. */
  shown: Float64Array;
  /** Cells that have run. */
  known: number;
  /** Trials that ran, and all; s left, about. */
  done: number;
  total: number;
  seconds: number | null;
}

/** What the blocks say so far; null before the grid is known. */
export function gather(blocks: readonly Block<"map">[]): Grid | null {
  const head = blocks.find((block) => block.name === "grid");
  if (!head) return null;
  const [xs, ys] = [(head.columns.x ?? new Float64Array()) as Float64Array, (head.columns.y ?? new Float64Array()) as Float64Array];
  const empty = () => new Float64Array(xs.length * ys.length).fill(NaN);
  const progress = blocks.findLast((block) => block.name === "progress")?.values;
  const grid: Grid = {
    ...head.values,
    xs,
    ys,
    value: empty(),
    low: empty(),
    high: empty(),
    n: empty(),
    shown: empty(),
    known: 0,
    done: progress?.done ?? 0,
    total: progress?.total ?? 0,
    seconds: progress?.seconds ?? null,
  };
  for (const block of blocks) if (block.name === "cells") fill(grid, block.columns);
  grid.known = grid.n.reduce((count, n) => count + Number(n > 0), 0);
  for (let i = 0; i < grid.value.length; i += 1) if ((grid.n[i] as number) > 0) grid.shown[i] = grid.value[i] as number;
  return grid;
}

function fill(grid: Grid, { i, j, span, value, low, high, n }: Columns): void {
  const [width, height] = [grid.xs.length, grid.ys.length];
  for (let row = 0; row < (i?.length ?? 0); row += 1) {
    const [column, line, wide] = [i?.[row] as number, j?.[row] as number, span?.[row] ?? 1];
    if (!(column >= 0 && column < width && line >= 0 && line < height)) continue;
    const at = line * width + column;
    [grid.value[at], grid.low[at], grid.high[at], grid.n[at]] = [value?.[row] ?? NaN, low?.[row] ?? NaN, high?.[row] ?? NaN, n?.[row] ?? NaN];
    const reach = Math.floor(wide / 2);
    // The last coarse cell stands for what is beyond it too.
    const [left, right] = [column - reach, column + reach >= width - reach - 1 ? width - 1 : column + reach];
    const [below, above] = [line - reach, line + reach >= height - reach - 1 ? height - 1 : line + reach];
    if (wide > 1) cover(grid, [Math.max(0, left), right], [Math.max(0, below), above], value?.[row] ?? NaN);
  }
}

function cover(grid: Grid, [left, right]: [number, number], [below, above]: [number, number], value: number): void {
  for (let line = below; line <= above; line += 1) {
    for (let column = left; column <= right; column += 1) grid.shown[line * grid.xs.length + column] = value;
  }
}

/** Whether a cell's interval leaves open which of two congestion controls carries more. */
export function undecided(grid: Grid, at: number): boolean {
  return grid.quantity === "ratio" && (grid.low[at] as number) <= 1 && (grid.high[at] as number) >= 1;
}

/** A point in units of cells: the centre of the first cell is at 0.5, 0.5. */
export type Line = [number, number][];

/**
 * The lines along which the grid, smoothed a little over neighbouring cells, has this value: only where it changes there, since on flat ground a line would
 * follow the noise. Where cells have not run, what stands for them has the value; no line before every cell shows something.
 */
export function isoline(grid: Grid, level: number): Line[] {
  const [width, height] = [grid.xs.length, grid.ys.length];
  const scaled = logarithmic(grid.quantity);
  const values = Array.from(grid.shown, (value) => (scaled ? Math.log(Math.min(FAR, Math.max(value, 1 / FAR))) : value));
  if (width < 3 || height < 3 || values.some(Number.isNaN)) return [];
  const least = scaled ? Math.log(STEEP) : (STEEP - 1) * (Math.max(...values) - Math.min(...values));
  const smooth = smoothed(values, width, height);
  const shape = contours()
    .size([width + 2, height + 2])
    .smooth(true)
    .contour(framed(smooth, width, height), scaled ? Math.log(level) : level);
  const steep = steepness(smooth, width, height);
  return shape.coordinates
    .flatMap((rings) => rings.flatMap((ring) => open(unframed(ring as Line, width, height), width, height)))
    .flatMap((line) => parts(line, ([x, y]) => steep(x, y) >= least))
    .filter((line) => lengthOf(line) >= SHORTEST);
}

/** A ratio beyond this, or below its inverse, is as good as it. */
const FAR = 50;
/** Change around a point of a line, as a factor or a share of the whole range over 1, from which the line is drawn. */
const STEEP = 1.15;
/** Least length of a line, cells. */
const SHORTEST = 4;
/** What neighbours count in the mean of a cell that counts 1. */
const [BESIDE, ACROSS] = [0.45, 0.2];

/** Means over a cell and its eight neighbours. */
function smoothed(values: readonly number[], width: number, height: number): number[] {
  return values.map((_, at) => {
    const [i, j] = [at % width, Math.floor(at / width)];
    let [sum, weight] = [0, 0];
    for (let dj = -1; dj <= 1; dj += 1) {
      for (let di = -1; di <= 1; di += 1) {
        if (i + di < 0 || i + di >= width || j + dj < 0 || j + dj >= height) continue;
        const share = di && dj ? ACROSS : di || dj ? BESIDE : 1;
        sum += share * (values[at + dj * width + di] as number);
        weight += share;
      }
    }
    return sum / weight;
  });
}

/** The values with those at the edge once more around them, so that lines leave the grid straight. */
function framed(values: readonly number[], width: number, height: number): number[] {
  const inside = (at: number, most: number) => Math.min(most - 1, Math.max(0, at));
  return Array.from({ length: (width + 2) * (height + 2) }, (_, at) => {
    const [i, j] = [inside((at % (width + 2)) - 1, width), inside(Math.floor(at / (width + 2)) - 1, height)];
    return values[j * width + i] as number;
  });
}

/** A ring around the framed values in units of the grid's own cells, no further than its edge. */
function unframed(ring: Line, width: number, height: number): Line {
  const inside = (at: number, most: number) => Math.min(most, Math.max(0, at - 1));
  return ring.map(([x, y]) => [inside(x, width), inside(y, height)]);
}

/** How much the values differ around a point. */
function steepness(values: readonly number[], width: number, height: number): (x: number, y: number) => number {
  return (x, y) => {
    let [least, largest] = [Infinity, -Infinity];
    for (let j = Math.max(0, Math.floor(y) - 1); j <= Math.min(height - 1, Math.floor(y) + 1); j += 1) {
      for (let i = Math.max(0, Math.floor(x) - 1); i <= Math.min(width - 1, Math.floor(x) + 1); i += 1) {
        const value = values[j * width + i] as number;
        [least, largest] = [Math.min(least, value), Math.max(largest, value)];
      }
    }
    return largest - least;
  };
}

function lengthOf(line: Line): number {
  return line.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - (line[i]?.[0] ?? x), y - (line[i]?.[1] ?? y)), 0);
}

/** The parts of a line whose points are wanted. */
function parts(line: Line, wanted: (point: [number, number]) => boolean): Line[] {
  const found: Line[] = [[]];
  for (const point of line) {
    if (wanted(point)) found.at(-1)?.push(point);
    else if (found.at(-1)?.length) found.push([]);
  }
  return found.filter((part) => part.length > 1);
}

/** A ring without the parts that only run along the edge of the grid. */
function open(ring: Line, width: number, height: number): Line[] {
  const lines: Line[] = [];
  let line: Line = [];
  for (let i = 1; i < ring.length; i += 1) {
    const [from, to] = [ring[i - 1] as [number, number], ring[i] as [number, number]];
    if (along(from, to, width, height)) {
      if (line.length) lines.push(line);
      line = [];
    } else line.push(...(line.length ? [to] : [from, to]));
  }
  if (line.length) lines.push(line);
  // A ring begins anywhere: its first and its last line may be one.
  const [first, last] = [lines[0], lines.at(-1)];
  if (first && last && first !== last && same(last.at(-1), first[0])) {
    lines[0] = [...last, ...first.slice(1)];
    lines.pop();
  }
  return lines;
}

function same(one: [number, number] | undefined, other: [number, number] | undefined): boolean {
  return one !== undefined && other !== undefined && one[0] === other[0] && one[1] === other[1];
}

function along([x0, y0]: [number, number], [x1, y1]: [number, number], width: number, height: number): boolean {
  const edge = (from: number, to: number, end: number) => (from <= 0.01 && to <= 0.01) || (from >= end - 0.01 && to >= end - 0.01);
  return edge(x0, x1, width) || edge(y0, y1, height);
}

/** Whether factors matter rather than differences. */
export function logarithmic(quantity: MapGrid["quantity"]): boolean {
  return quantity === "ratio";
}

/** The levels that have a line, the one that matters most first: where a ratio is 1, where half is left. */
export function levels(grid: Grid): number[] {
  if (grid.quantity === "ratio") return [1, 2, 0.5];
  if (grid.quantity === "retention") return [0.5, 0.9, 0.1];
  const known = Array.from(grid.value)
    .filter(Number.isFinite)
    .sort((one, other) => one - other);
  const [low, high] = [known[Math.floor(known.length * 0.05)] ?? 0, known[Math.floor(known.length * 0.95)] ?? 0];
  return high > low ? [0.5, 0.25, 0.75].map((share) => Number((low + share * (high - low)).toPrecision(2))) : [];
}
