/** Lines of any length as few points: by column of pixels the least and the largest value, so that a plot costs what its width does. */
import type { Numbers, Range } from "./description";
import type { Transform } from "./scales";

/** Where values lie: the plot's area in pixels and its axes. */
export interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** From values to pixels. */
export class View {
  private readonly x0: number;
  private readonly xPer: number;
  private readonly y0: number;
  private readonly yPer: number;

  constructor(
    readonly area: Area,
    readonly xs: Range,
    readonly ys: Range,
    private readonly tx: Transform,
    private readonly ty: Transform,
  ) {
    this.x0 = tx.to(xs[0]);
    this.xPer = area.width / (tx.to(xs[1]) - this.x0);
    this.y0 = ty.to(ys[0]);
    this.yPer = area.height / (ty.to(ys[1]) - this.y0);
  }

  x(value: number): number {
    return this.area.left + (this.tx.to(value) - this.x0) * this.xPer;
  }

  y(value: number): number {
    return this.area.top + this.area.height - (this.ty.to(value) - this.y0) * this.yPer;
  }

  /** The value at a pixel of the x axis. */
  xAt(pixel: number): number {
    return this.tx.from(this.x0 + (pixel - this.area.left) / this.xPer);
  }

  yAt(pixel: number): number {
    return this.ty.from(this.y0 + (this.area.top + this.area.height - pixel) / this.yPer);
  }
}

/** Points in a row, x and y in turn; NaN ends a piece. */
export type Points = Float64Array | number[];

/** Visible values per column of pixels from which a line is reduced. */
const DENSE = 4;
/** Pixels between markers below which they are left out. */
const MARKER_ROOM = 11;
/** Pixels between the markers of a line that has no room for all. */
const MARKER_STEP = 180;

/** The first place whose value is not below `value`. */
export function lowerBound(x: Numbers, value: number, from = 0): number {
  let [low, high] = [from, x.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((x[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of the nearest value; -1 where there is none. */
export function nearest(x: Numbers, value: number): number {
  const right = lowerBound(x, value);
  if (right >= x.length) return x.length - 1;
  return right > 0 && value - (x[right - 1] as number) < (x[right] as number) - value ? right - 1 : right;
}

/** The places that a view shows of x, one more on each side so that lines leave the area: [first, end). */
export function visible(x: Numbers, [from, to]: Range): [number, number] {
  const first = Math.max(0, lowerBound(x, from) - 1);
  let end = lowerBound(x, to);
  while (end < x.length && x[end] === to) end += 1;
  return [first, Math.min(x.length, end + 1)];
}

/** Whether a line has so many values in view that it is drawn as its envelope. */
export function dense(x: Numbers, view: View): boolean {
  const [first, end] = visible(x, view.xs);
  return end - first > DENSE * Math.max(1, view.area.width);
}

let scratch = new Float64Array(4096);

/** The line of x and y as pixels, value by value. What it returns is good until the next call. */
export function trace(x: Numbers, y: Numbers, view: View, step = false): Float64Array {
  const [first, end] = visible(x, view.xs);
  room(4 * (end - first) + 4);
  let at = 0;
  for (let i = first; i < end; i += 1) {
    const [px, py] = [view.x(x[i] as number), view.y(y[i] as number)];
    if (step && i > first) at = put(at, px, scratch[at - 1] as number);
    at = put(at, px, py);
  }
  return scratch.subarray(0, at);
}

/**
 * A dense line of a width as polygons: in each column of pixels it covers the values there and the last one before, so that neighbours touch. Filling it costs
 * what the plot's width does, and a canvas fills far faster than it strokes. Of a dashed line, columns in its gaps are left out; `dash` has the lengths of dashes
 * and gaps, pixels, from the start of the axis on, so that dashes move with what is shown.
 */
export function envelope(x: Numbers, y: Numbers, view: View, width: number, dash: readonly number[] = []): Points[] {
  const [first, end] = visible(x, view.xs);
  const columns = Math.ceil(view.area.width);
  const pieces: Points[] = [];
  let [upper, lower]: [number[], number[]] = [[], []];
  let before = NaN;
  const close = (latest = NaN) => {
    if (upper.length) pieces.push([...upper, ...reversed(lower)]);
    [upper, lower, before] = [[], [], latest];
  };
  const begin = view.x(0);
  const drawn = dashes(dash, Number.isFinite(begin) ? begin : view.area.left);
  for (let column = -1, i = first; column <= columns && i < end; column += 1) {
    const pixel = view.area.left + column;
    const last = column === columns ? end : Math.min(end, lowerBound(x, view.xAt(pixel + 1), i));
    if (last <= i) continue;
    const { least, largest, latest } = span(y, i, last, before);
    i = last;
    if (latest !== latest) {
      close();
      continue;
    }
    if (!drawn(pixel)) {
      close(latest);
      continue;
    }
    const [top, bottom] = [view.y(largest) - width / 2, view.y(least) + width / 2];
    upper.push(pixel, top, pixel + 1, top);
    lower.push(pixel, bottom, pixel + 1, bottom);
    before = latest;
  }
  close();
  return pieces;
}

/** Whether a pixel lies in a dash, not in a gap. */
function dashes(lengths: readonly number[], begin: number): (pixel: number) => boolean {
  const period = lengths.reduce((sum, each) => sum + each, 0);
  if (!period) return () => true;
  return (pixel) => {
    let rest = (((pixel - begin) % period) + period) % period;
    const place = lengths.findIndex((each) => (rest -= each) < 0);
    return place % 2 === 0;
  };
}

const reach = { least: 0, largest: 0, latest: 0 };

/** Least, largest and last value of [from, end), and of the one before; all NaN where none is a number. */
function span(y: Numbers, from: number, end: number, before: number): typeof reach {
  let [least, largest, latest] = [before, before, NaN];
  for (let i = from; i < end; i += 1) {
    const value = y[i] as number;
    if (value !== value) continue;
    if (!(value >= least)) least = value;
    if (!(value <= largest)) largest = value;
    latest = value;
  }
  [reach.least, reach.largest, reach.latest] = [least, largest, latest];
  return reach;
}

function put(at: number, x: number, y: number): number {
  scratch[at] = x;
  scratch[at + 1] = y;
  return at + 2;
}

function room(length: number): void {
  if (scratch.length < length) scratch = new Float64Array(2 * length);
}

/** The band between two lines as polygons, one for each piece without gaps; a dense band has one least and one largest value for each column. */
export function band(x: Numbers, low: Numbers, high: Numbers, view: View): Points[] {
  const [first, end] = visible(x, view.xs);
  const many = dense(x, view);
  const pieces: Points[] = [];
  let [top, bottom]: [number[], number[]] = [[], []];
  const close = () => {
    if (top.length > 2) pieces.push([...top, ...reversed(bottom)]);
    [top, bottom] = [[], []];
  };
  for (let i = first; i < end;) {
    const last = many ? Math.max(i + 1, lowerBound(x, view.xAt(Math.floor(view.x(x[i] as number)) + 1), i)) : i + 1;
    const [least, largest] = [smallest(low, i, last), -smallest(high, i, last, -1)];
    if (Number.isFinite(least) && Number.isFinite(largest)) {
      const px = view.x(x[i] as number);
      bottom.push(px, view.y(least));
      top.push(px, view.y(largest));
    } else close();
    i = last;
  }
  close();
  return pieces;
}

function smallest(values: Numbers, from: number, end: number, sign = 1): number {
  let least = NaN;
  for (let i = from; i < end; i += 1) {
    const value = sign * (values[i] as number);
    if (!(value >= least)) least = value === value ? value : least;
  }
  return least;
}

function reversed(points: number[]): number[] {
  const turned: number[] = [];
  for (let i = points.length - 2; i >= 0; i -= 2) turned.push(points[i] as number, points[i + 1] as number);
  return turned;
}

/** The places that get a marker: all where there is room, otherwise one in a while; `turn` puts those of several lines beside each other. */
export function marked(x: Numbers, view: View, turn = 0): number[] {
  const [first, end] = visible(x, view.xs);
  if (end - first <= view.area.width / MARKER_ROOM + 2) return Array.from({ length: end - first }, (_, i) => first + i);
  const begin = view.area.left + MARKER_STEP * (0.3 + (turn % 4) / 4);
  const count = Math.max(0, Math.floor((view.area.left + view.area.width - begin) / MARKER_STEP) + 1);
  return Array.from({ length: count }, (_, i) => nearest(x, view.xAt(begin + i * MARKER_STEP)));
}
