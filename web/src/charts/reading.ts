/** What a cursor reads: the value of each series nearest to a place on x, as numbers and as a sentence. */
import type { Chart, Range, Series } from "./description";
import { nearest, visible } from "./lines";
import { format, formatInterval } from "./units";

export interface Value {
  label: string;
  x: number;
  y: number;
  text: string;
}

export interface Reading {
  at: number;
  values: Value[];
}

/** The values nearest to a place; a series that has none there is left out. */
export function read(chart: Chart, at: number): Reading {
  const values = chart.series.flatMap((series) => {
    const place = within(series, at);
    return place < 0 ? [] : [valueOf(chart, series, place)];
  });
  return { at, values };
}

/** The place of a series' nearest value; -1 beyond its ends. */
function within({ x }: Series, at: number): number {
  const place = nearest(x, at);
  if (place < 0) return -1;
  const [first, last] = [x[0] as number, x[x.length - 1] as number];
  const step = (last - first) / Math.max(1, x.length - 1);
  return at < first - step || at > last + step ? -1 : place;
}

function valueOf(chart: Chart, series: Series, place: number): Value {
  const [x, y] = [series.x[place] as number, series.y[place] as number];
  const [low, high] = [series.low?.[place] ?? NaN, series.high?.[place] ?? NaN];
  return { label: series.label, x, y, text: formatInterval(y, low, high, chart.y.quantity) };
}

/** A reading as a sentence. */
export function sentence(chart: Chart, reading: Reading): string {
  const said = reading.values.map((value) => `${value.label} ${value.text}`).join("; ");
  return `${chart.x.title} ${format(reading.at, chart.x.quantity)}: ${said || "no value"}.`;
}

/** The value of x one point further along a series, at least a pixel away; null at its end. */
export function step(series: Series, from: number | null, direction: 1 | -1, shown: Range, pixel: (value: number) => number): number | null {
  const { x } = series;
  const [first, end] = visible(x, shown);
  if (from === null) return inside(x[direction > 0 ? first : end - 1] ?? null, shown);
  let place = nearest(x, from);
  const begin = pixel(from);
  do place += direction;
  while (place > 0 && place < x.length - 1 && Math.abs(pixel(x[place] as number) - begin) < 1);
  return inside(x[place] ?? null, shown) ?? from;
}

function inside(value: number | null, [from, to]: Range): number | null {
  return value === null ? null : Math.min(to, Math.max(from, value));
}
