/**
 * What a path can be varied along, for curves and maps: the server says each axis (`python/tcpscape/web/axes.py`); here texts of the state are placed on it,
 * and places become texts of the state.
 */
import type { Axis } from "../charts/description";
import { transform } from "../charts/scales";
import { type Kind, read, written } from "../charts/units";
import type { AxisChoice, AxisDocument, State } from "../server/contract";

/** A place this close to a level, as a share of the axis' length on the screen, is the level: less than a step of the arrow keys. */
const CLOSE = 0.004;

/** The field of the state that is an axis, as text. */
export function textOf(axis: string, state: State): string {
  const text = (state as unknown as Record<string, unknown>)[axis];
  return typeof text === "string" ? text : "";
}

/** What the texts of an axis are: those of a buffer without a unit of its own are multiples of the bandwidth-delay product. */
function kindOf(axis: AxisChoice): Kind {
  return axis.axis === "buffer" && axis.quantity === "number" ? "buffer" : axis.quantity;
}

/** Where a text stands, SI; null where it is no number on this axis. */
export function place(axis: AxisChoice, text: string): number | null {
  return read(kindOf(axis), text);
}

/** The state's place on an axis of an answer; `asked` is the text that the state had when it was asked. */
export function hereOn(axis: AxisDocument, asked: string, now: string): number | null {
  return now === asked ? axis.here : place(axis, now);
}

/** The text of a place, as the state's field takes it: a level's own where it is one or nearly so. */
export function words(axis: AxisDocument, x: ArrayLike<number>, value: number): string {
  const { to } = transform(chartAxis(axis, x));
  const apart = (level: number) => Math.abs(to(level) - to(value));
  const near = CLOSE * Math.abs(to(x[x.length - 1] as number) - to(x[0] as number));
  const at = Array.from(x).findIndex((level) => apart(level) <= near);
  return axis.words[at] ?? (value === 0 ? "0" : written(kindOf(axis), value));
}

/** The axis of a chart: logarithmic where the server says so, with room for 0 where 0 is a level. */
export function chartAxis(axis: AxisChoice, x: ArrayLike<number>): Axis {
  const title = axis.title.charAt(0).toUpperCase() + axis.title.slice(1) + (kindOf(axis) === "buffer" ? " (bandwidth-delay products)" : "");
  const plain = { title, quantity: axis.quantity };
  if (!axis.log) return { ...plain, scale: "linear" };
  const positive = Array.from(x).find((each) => each > 0) ?? 1;
  return (x[0] as number) > 0 ? { ...plain, scale: "log" } : { ...plain, scale: "asinh", knee: positive };
}

/** An axis' title at the beginning of a sentence or a list. */
export function titled(axis: AxisChoice): string {
  return axis.title.charAt(0).toUpperCase() + axis.title.slice(1);
}
