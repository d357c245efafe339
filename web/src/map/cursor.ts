/** The cursor of cells: where a key leads, and what a cell says. */
import { format, plain, unitOf } from "../charts/units";
import { QUANTITIES } from "../server/contract";
import { type Marks, valueText } from "./draw";
import { type Grid, undecided } from "./grid";

/** The cell that a key leads to; -1 where the key is another. */
export function moved(grid: Pick<Grid, "xs" | "ys">, from: number, key: string, here: Marks["here"]): number {
  const [width, height] = [grid.xs.length, grid.ys.length];
  const step: Record<string, [number, number]> = {
    ArrowRight: [1, 0],
    ArrowLeft: [-1, 0],
    ArrowUp: [0, 1],
    ArrowDown: [0, -1],
    PageUp: [0, 5],
    PageDown: [0, -5],
  };
  const ends: Record<string, [number, number]> = { Home: [-width, 0], End: [width, 0] };
  const by = step[key] ?? ends[key];
  if (!by) return -1;
  if (from < 0) return nearestCell(grid.ys, here?.y) * width + nearestCell(grid.xs, here?.x);
  const clamp = (value: number, most: number) => Math.min(most - 1, Math.max(0, value));
  return clamp(Math.floor(from / width) + by[1], height) * width + clamp((from % width) + by[0], width);
}

function nearestCell(centres: Float64Array, value: number | undefined): number {
  if (value === undefined) return Math.floor(centres.length / 2);
  return centres.reduce((best, centre, i) => (Math.abs(centre - value) < Math.abs((centres[best] as number) - value) ? i : best), 0);
}

/** What a cell says. */
export function sentence(grid: Grid, at: number): string {
  const [i, j] = [at % grid.xs.length, Math.floor(at / grid.xs.length)];
  const place = `${grid.x.title} ${grid.x.words[i] ?? format(grid.xs[i] as number, grid.x.quantity)}, ${grid.y.title} ${grid.y.words[j] ?? format(grid.ys[j] as number, grid.y.quantity)}`;
  const n = grid.n[at] as number;
  if (!(n > 0)) return `${place}: not measured yet.`;
  const [value, low, high] = [grid.value[at], grid.low[at], grid.high[at]] as [number, number, number];
  const interval = Number.isFinite(low) && Number.isFinite(high) ? ` [${bare(grid, low, value)}, ${bare(grid, high, value)}]` : "";
  const open = undecided(grid, at) ? "; undecided, the interval has 1 in it" : "";
  return `${place}: ${told(grid, value)}${interval}, ${n} run${n === 1 ? "" : "s"}${grid.quantity === "ratio" ? " of each" : ""}${open}.`;
}

/** An interval's end in the unit of the value. */
function bare({ quantity }: Grid, end: number, value: number): string {
  if (quantity === "ratio") return plain(end);
  return plain(end / unitOf(QUANTITIES[quantity].quantity, value).size);
}

/** A value with what it is of. */
function told(grid: Grid, value: number): string {
  const { first, second, quantity } = grid;
  return QUANTITIES[quantity].told.replace("{first}", first).replace("{second}", second).replace("{value}", valueText(grid, value));
}
