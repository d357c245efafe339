/** Axes as numbers: the straight scale behind each, ends that are round, ticks and their texts. */
import type { Axis, Chart, Numbers, Range, Series } from "./description";
import { behindTitle, format, plain, type Unit, unitOf } from "./units";

/** Value → place on the axis' straight scale, and back. */
export interface Transform {
  to(value: number): number;
  from(place: number): number;
}

export interface Tick {
  at: number;
  text: string;
}

/** Ticks with the unit that the title names; null where each tick has its own. */
export interface Ticks {
  ticks: Tick[];
  unit: Unit | null;
}

const LINEAR: Transform = { to: (value) => value, from: (place) => place };
const LOG: Transform = { to: (value) => Math.log10(value), from: (place) => 10 ** place };
/** Ratio of the ends of a logarithmic axis below which its ticks are linear. */
const SHORT_LOG = 4;
/** Ratio from which only powers of ten have a tick. */
const LONG_LOG = 2000;
/** How far beyond the values an interval makes the axis longer, as a factor. */
const BEYOND = 1.4;
/** Room above the largest value. */
const HEADROOM = 1.06;

/** The scale of an axis. */
export function transform(axis: Axis): Transform {
  if (axis.scale === "log") return LOG;
  if (axis.scale !== "asinh") return LINEAR;
  const knee = axis.knee || 1;
  return { to: (value) => Math.asinh(value / knee), from: (place) => Math.sinh(place) * knee };
}

/** At most about `most` ticks between two values. */
export function ticks(axis: Axis, [from, to]: Range, most: number): Ticks {
  if (axis.scale === "log" && from > 0 && to / from >= SHORT_LOG) return logTicks(axis, from, to, most);
  if (axis.scale === "asinh") return asinhTicks(axis, from, to, most);
  const unit = unitOf(axis.quantity, from, to);
  const step = niceStep((to - from) / unit.size, most);
  const places: Tick[] = [];
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  for (let k = Math.ceil(from / unit.size / step - 1e-9); k * step * unit.size <= to * (1 + 1e-12) + 1e-300 && places.length < 100; k += 1) {
    places.push({ at: k * step * unit.size, text: k === 0 ? "0" : (k * step).toFixed(Math.min(decimals, 12)) });
  }
  return { ticks: places, unit };
}

/** The step 1, 2 or 5 times a power of ten that has at most `most` steps in `length`. */
export function niceStep(length: number, most: number): number {
  const rough = length / Math.max(1, most);
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9)) ?? 10);
}

function logTicks(axis: Axis, from: number, to: number, most: number): Ticks {
  const span = to / from;
  const steps = span >= LONG_LOG || most < 4 ? [1] : [1, 2, 5];
  const unit = span < 1e3 ? unitOf(axis.quantity, Math.sqrt(from * to)) : null;
  let at: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) {
    for (const step of steps) {
      const value = Number((step * 10 ** power).toPrecision(6));
      if (value >= from * (1 - 1e-9) && value <= to * (1 + 1e-9)) at.push(value);
    }
  }
  const decades = Math.ceil(at.length / Math.max(1, most));
  if (decades > 1) at = at.filter((_, index) => index % decades === 0);
  return { ticks: at.map((value) => ({ at: value, text: unit ? plain(value / unit.size, 4) : format(value, axis.quantity) })), unit };
}

function asinhTicks(axis: Axis, from: number, to: number, most: number): Ticks {
  const knee = axis.knee || 1;
  const { ticks: above } = logTicks({ ...axis, scale: "log" }, Math.max(knee, from > 0 ? from : knee), Math.max(to, knee), most - 1);
  const unit = unitOf(axis.quantity, Math.sqrt(knee * Math.max(to, knee)));
  const at = [...(from <= 0 ? [0] : []), ...above.map((tick) => tick.at)];
  return { ticks: at.map((value) => ({ at: value, text: plain(value / unit.size, 4) })), unit };
}

/** The axis' title with its unit. */
export function titleOf(axis: Axis, unit: Unit | null): string {
  return axis.title + behindTitle(axis.quantity, unit);
}

/** The least and the largest finite value of some arrays; null where there is none. `positive` leaves out what a logarithm cannot show. */
export function extent(arrays: readonly Numbers[], positive = false): Range | null {
  let least = Infinity;
  let largest = -Infinity;
  for (const array of arrays) {
    for (let i = 0; i < array.length; i += 1) {
      const value = array[i] as number;
      if (positive && !(value > 0)) continue;
      if (value < least && value !== -Infinity) least = value;
      if (value > largest && value !== Infinity) largest = value;
    }
  }
  return least <= largest ? [least, largest] : null;
}

/** The whole range of the x axis: of its data where the axis does not say. */
export function xRange(chart: Chart): Range {
  const axis = chart.x;
  const found = extent(
    all(chart)
      .filter((each) => each.x.length)
      .map((each) => ends(each.x)),
    axis.scale === "log",
  );
  const [from, to] = [axis.from ?? found?.[0] ?? (axis.scale === "log" ? 1 : 0), axis.to ?? found?.[1] ?? 1];
  return to > from ? [from, to] : widened(axis, from);
}

/**
 * The whole range of the y axis: from 0 on a linear scale, to a round value over its data. All values are in it; an interval that reaches far beyond them, as that
 * of very few runs does, is cut.
 */
export function yRange(chart: Chart): Range {
  const axis = chart.y;
  const log = axis.scale === "log";
  const values = extent(
    all(chart).flatMap((each) => [each.y, each.strip?.y].filter((array) => array !== undefined)),
    log,
  );
  const bands =
    extent(
      all(chart).flatMap((each) => [each.low, each.high].filter((array) => array !== undefined)),
      log,
    ) ?? values;
  if (log) {
    const [low, high] = values ?? [1, 10];
    const [from, to] = [axis.from ?? Math.max(bands?.[0] ?? low, low / BEYOND) / 1.1, axis.to ?? Math.min(bands?.[1] ?? high, high * BEYOND) * 1.1];
    return from < to ? [Math.min(from, low), Math.max(to, high)] : [low / 2, high * 2];
  }
  const from = axis.from ?? Math.min(0, values?.[0] ?? 0);
  const high = values?.[1] ?? 0;
  const to = axis.to ?? roundUp(Math.max(high, Math.min(bands?.[1] ?? high, high * BEYOND)) * HEADROOM, from);
  return to > from ? [from, to] : [from, from + 1];
}

/** The least value with two digits, the second even or 0 or 5, that is not below `value`: an axis that ends there stays while data come in. */
function roundUp(value: number, from: number): number {
  const length = value - from;
  if (!(length > 0)) return value;
  const step = 10 ** Math.floor(Math.log10(length)) / 4;
  return from + Math.ceil(length / step - 1e-9) * step;
}

function widened(axis: Axis, value: number): Range {
  return axis.scale === "log" ? [value / 2, value * 2] : [value - 0.5 * (Math.abs(value) || 1), value + 0.5 * (Math.abs(value) || 1)];
}

function all(chart: Chart): Series[] {
  return [...chart.series, ...(chart.before ?? [])];
}

function ends(x: Numbers): number[] {
  return [x[0] as number, x[x.length - 1] as number];
}

/** A range moved or stretched around a value, kept inside `whole` and not shorter than a millionth of it. `factor` below 1 zooms in. */
export function zoomed(axis: Axis, now: Range, whole: Range, factor: number, around: number, shift = 0): Range {
  const { to, from } = transform(axis);
  const [least, most] = [to(whole[0]), to(whole[1])];
  const [low, high] = [to(now[0]), to(now[1])];
  const centre = Number.isFinite(to(around)) ? to(around) : (low + high) / 2;
  const length = Math.min(most - least, Math.max((most - least) * 1e-6, (high - low) * factor));
  let begin = centre - ((centre - low) / (high - low)) * length + shift * (high - low);
  begin = Math.min(Math.max(begin, least), most - length);
  return [from(begin), from(begin + length)];
}
