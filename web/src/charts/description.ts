/** What a chart shows, apart from how it is drawn: the same description makes the plot on the page, its PNG, SVG and CSV. */
import type { Quantity } from "./units";

/** How a congestion control looks, the same in every figure. */
export interface Look {
  colour: string;
  /** 0 solid, 1 dashed, 2 dotted, 3 mixed. */
  dash: number;
  /** A marker of matplotlib: o s ^ D v P X < h d > *. */
  marker: string;
}

export type Numbers = Float64Array | Float32Array | number[];

/** One axis. */
export interface Axis {
  title: string;
  quantity: Quantity;
  /** `asinh` is linear below `knee` and logarithmic above it, so that it has room for 0. */
  scale?: "linear" | "log" | "asinh";
  knee?: number;
  /** Ends of the axis; what the data need where they are missing. */
  from?: number;
  to?: number;
}

/** A line, steps, or points of their own, each with its own places along x (ascending). NaN is a gap. */
export interface Series {
  label: string;
  look: Look;
  x: Numbers;
  y: Numbers;
  /** Ends of the interval of each value: a band. */
  low?: Numbers;
  high?: Numbers;
  kind?: "line" | "step" | "points";
  /** A marker at each value where there is room. */
  markers?: boolean;
  /** Single runs, drawn as faint points behind. */
  strip?: { x: Numbers; y: Numbers };
  /** Trials behind each value, for the table. */
  n?: Numbers;
  width?: number;
}

/** A vertical line with a label. `here` is the state's place. */
export interface Mark {
  id: string;
  at: number;
  label: string;
  kind?: "here" | "event";
  colour?: string;
  /** Called while the mark is dragged or moved by arrow keys; `done` at the end of the movement. Without it the mark stays where it is. */
  onMove?: (value: number, done: boolean) => void;
}

/** A shaded stretch of x, such as a recovery. */
export interface Span {
  from: number;
  to: number;
  label: string;
  colour: string;
}

export interface Chart {
  /** What it shows, for headings, readers of screens and file names. */
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  /** What was there before, drawn faintly behind, where it is still the best that is known. */
  before?: Series[];
  marks?: Mark[];
  spans?: Span[];
}

/** From and to of an axis. */
export type Range = readonly [number, number];
