/**
 * Panels below each other with one axis of time, on one canvas. Lines cost what the width does (`charts/lines.ts` reduces them to the least and largest value of
 * each column of pixels), symbols what room there is for them.
 */
import type { Chart, Mark, Range, Series } from "../charts/description";
import { drawData, drawScale, type Theme, X_ROOM } from "../charts/draw";
import { type Area, band, View, visible } from "../charts/lines";
import { outline, type Pen } from "../charts/pen";
import { ticks, transform, yRange } from "../charts/scales";
import { behindTitle } from "../charts/units";

/** Symbols at places of time, all of one shape; `y` is a value of the panel's axis. */
export interface Symbols {
  t: Float32Array;
  y: Float32Array;
  shape: string;
  colour: string;
  /** Drawn as an outline. */
  hollow: boolean;
  /** Pixels above or below the value, so that two runs do not cover each other. */
  shift: number;
}

export interface Panel {
  id: string;
  chart: Chart;
  height: number;
  symbols?: Symbols[];
  /** Names of rows instead of a scale: row i is at the value i. */
  rows?: string[];
  /** Filled areas behind the lines. */
  areas?: Filled[];
  /** What the cursor reads, where that is not what the lines show. */
  readings?: Series[];
}

/** An area between two lines; `place` tells those of one colour apart. */
export interface Filled {
  x: Float32Array;
  low: Float32Array;
  high: Float32Array;
  colour: string;
  place: number;
}

export const MARGIN = { left: 60, right: 14, top: 18, head: 22, gap: 8, axis: 38 };
export const TIME = { title: "time", quantity: "time" } as const;
const SYMBOL = 4.5;
/** Of areas of one colour. */
const ALPHAS = [0.6, 0.42, 0.5, 0.34];
/** Pixels in which one symbol of a shape is drawn. */
const ROOM = 7;

/** Events for each place of a symbol from which a row shows their density. */
const CROWDED = 2;
/** Half of the height of that, pixels, and the opacity of a stretch with next to none. */
const [STRIP, FAINT] = [5, 0.15];

/** What a stack of panels shows. */
export interface Stacked {
  panels: readonly Panel[];
  /** Lines through all of them. */
  marks: readonly Mark[];
  whole: Range;
  /** Whether the scales are those of what is shown, not of the whole time. */
  fits: boolean;
}

/** Draws panels in these areas, and the names of the marks above them. */
export function drawStack(pen: Pen, { panels, marks, fits }: Stacked, areas: readonly Area[], shown: Range, now: Theme): void {
  panels.forEach((panel, place) => {
    const { chart } = panel;
    const view = new View(areas[place] as Area, shown, (fits && fitted(panel, shown)) || wholeRange(chart), transform(TIME), transform(chart.y));
    drawPanel(pen, panel, view, now, place === panels.length - 1, marks);
    if (place === 0) drawLabels(pen, marks, view, now);
  });
}

/** The range of y of a panel's whole time, which is the same in each frame. */
function wholeRange(chart: Chart): Range {
  const known = ranges.get(chart) ?? yRange(chart);
  ranges.set(chart, known);
  return known;
}

const ranges = new WeakMap<Chart, Range>();

/** The box of all panels with the space between them. */
export function boxOf(areas: readonly Area[], width: number): Area {
  const last = areas.at(-1);
  return {
    left: MARGIN.left,
    width: Math.max(1, width - MARGIN.left - MARGIN.right),
    top: MARGIN.top,
    height: last ? last.top + last.height - MARGIN.top : 0,
  };
}

/** The least and largest value that a panel's lines have in a stretch, with some room; null where there is none, or the panel has rows. */
export function fitted({ chart, rows }: Pick<Panel, "chart" | "rows">, shown: Range): Range | null {
  if (rows) return null;
  let [least, largest] = [Infinity, -Infinity];
  for (const { x, y } of chart.series) {
    const [first, end] = visible(x, shown);
    for (let i = first; i < end; i += 1) {
      const value = y[i] as number;
      if (value < least) least = value;
      if (value > largest) largest = value;
    }
  }
  const room = (largest - least) * 0.06 || Math.abs(largest) * 0.1 || 1;
  return least <= largest ? [least - room, largest + room] : null;
}

/** The areas of panels in a width, and the height of all of them. */
export function arranged(panels: readonly Pick<Panel, "height">[], width: number): { areas: Area[]; height: number } {
  let top = MARGIN.top;
  const areas = panels.map(({ height }) => {
    const area = { left: MARGIN.left, top: top + MARGIN.head, width: Math.max(1, width - MARGIN.left - MARGIN.right), height };
    top += MARGIN.head + height + MARGIN.gap;
    return area;
  });
  return { areas, height: top + MARGIN.axis };
}

/** A panel's title with its unit. */
export function headOf({ chart, rows }: Panel): string {
  if (rows) return chart.title;
  if (chart.y.quantity === "number") return `${chart.title} (${chart.y.title})`;
  return chart.title + behindTitle(chart.y.quantity, ticks(chart.y, yRange(chart), 3).unit);
}

/** One panel: its scale or rows, its lines and symbols; the last one has the axis of time. */
function drawPanel(pen: Pen, panel: Panel, view: View, now: Theme, last: boolean, marks: readonly Mark[]): void {
  const { left, top, width, height } = view.area;
  const across = ticks(TIME, view.xs, Math.max(2, Math.floor(width / X_ROOM)));
  for (const { at } of across.ticks) pen.line([view.x(at), top, view.x(at), top + height], { colour: now.line, width: 1, alpha: 0.5 });
  if (panel.rows) drawRows(pen, panel.rows, view, now);
  else drawScale(pen, panel.chart.y, view, now);
  pen.line([left, top + height, left + width, top + height], { colour: now.soft, width: 1 });
  pen.clipped(view.area, () => {
    for (const { x, low, high, colour, place } of panel.areas ?? [])
      pen.area(band(x, low, high, view), { colour, alpha: ALPHAS[place % ALPHAS.length] ?? 0.5 });
  });
  drawData(pen, panel.chart, view, now);
  for (const { at } of marks) pen.line(through(view, at), { colour: now.soft, width: 1, dash: [4, 3] });
  pen.clipped({ ...view.area, top: top - SYMBOL, height: height + 2 * SYMBOL }, () => {
    for (const symbols of panel.symbols ?? []) {
      if (panel.rows && isCrowded(symbols.t, view)) drawDensity(pen, symbols, view);
      else drawSymbols(pen, symbols, view, now);
    }
  });
  if (!last) return;
  for (const { at, text } of across.ticks) pen.text(text, view.x(at), top + height + 6, { colour: now.soft, align: "center", baseline: "top" });
  pen.text(`time (${across.unit?.name ?? "s"})`, left + width / 2, top + height + 29, { colour: now.ink, align: "center" });
}

/** Names of rows instead of a scale. */
function drawRows(pen: Pen, rows: readonly string[], view: View, now: Theme): void {
  const { left, width } = view.area;
  rows.forEach((name, row) => {
    pen.line([left, view.y(row), left + width, view.y(row)], { colour: now.line, width: 1, alpha: 0.6 });
    pen.text(name, left - 8, view.y(row), { colour: now.soft, size: 11, align: "right" });
  });
}

/** A mark's line from above a panel to below it, so that it looks like one through all; nothing where it is not shown. */
function through(view: View, at: number): number[] {
  const { area, xs } = view;
  const px = view.x(at);
  return at >= xs[0] && at <= xs[1] ? [px, area.top - MARGIN.head, px, area.top + area.height + MARGIN.gap] : [];
}

/** How the identity of a mark ends that is the end of another one: it has a name for those who cannot see it, but no label. */
export const END = " end";

/** The names of marks above the panels, where there is room for them. */
function drawLabels(pen: Pen, marks: readonly Mark[], view: View, now: Theme): void {
  let free = -Infinity;
  for (const { id, at, label } of [...marks].sort((one, other) => one.at - other.at)) {
    const px = view.x(at);
    const length = label.length * 6.6;
    const right = view.area.left + view.area.width;
    const from = Math.min(px, right - length);
    if (id.endsWith(END) || at < view.xs[0] || at > view.xs[1] || from < free) continue;
    pen.text(label, from, view.area.top - MARGIN.head - MARGIN.top / 2, { colour: now.ink });
    free = from + length + 8;
  }
}

/** The places of the symbols that are drawn: of those in order of time, the first in each stretch of `room` pixels, the same ones while panning. */
export function withRoom(t: Float32Array, xs: Range, perSecond: number, room = ROOM): number[] {
  const [first, end] = visible(t, xs);
  const chosen: number[] = [];
  let last = first > 0 ? Math.floor(((t[first - 1] as number) * perSecond) / room) : -1;
  for (let i = first; i < end; i += 1) {
    const stretch = Math.floor(((t[i] as number) * perSecond) / room);
    if (stretch === last) continue;
    chosen.push(i);
    last = stretch;
  }
  return chosen;
}

/** Whether so many symbols of a row are in sight that most of them would be left out. */
export function isCrowded(t: Float32Array, { area, xs }: Pick<View, "area" | "xs">): boolean {
  const [first, end] = visible(t, xs);
  return end - first > (CROWDED * area.width) / ROOM;
}

/** How many of the times are in each stretch of `room` pixels, those with none left out: the stretch's number from 0 s on, and the count. */
export function counted(t: Float32Array, xs: Range, perSecond: number, room = ROOM): [number, number][] {
  const [first, end] = visible(t, xs);
  const counts = new Map<number, number>();
  for (let i = first; i < end; i += 1) {
    const stretch = Math.floor(((t[i] as number) * perSecond) / room);
    counts.set(stretch, (counts.get(stretch) ?? 0) + 1);
  }
  return [...counts];
}

/** Thousands of events as a strip: the more there are in a stretch, the stronger it is. */
function drawDensity(pen: Pen, { t, y, colour, shift }: Symbols, view: View): void {
  const perSecond = view.area.width / (view.xs[1] - view.xs[0]);
  const stretches = counted(t, view.xs, perSecond);
  const most = Math.max(...stretches.map(([, count]) => count));
  const middle = view.y(y[0] as number) + shift;
  for (const [stretch, count] of stretches) {
    const from = view.x((stretch * ROOM) / perSecond);
    const ring = [from, middle - STRIP, from + ROOM, middle - STRIP, from + ROOM, middle + STRIP, from, middle + STRIP];
    pen.area([ring], { colour, alpha: FAINT + (1 - FAINT) * (count / most) });
  }
}

function drawSymbols(pen: Pen, { t, y, shape, colour, hollow, shift }: Symbols, view: View, now: Theme): void {
  const perSecond = view.area.width / (view.xs[1] - view.xs[0]);
  const unit = ringOf(shape);
  const ring = new Float64Array(unit.length);
  const [fill, edge] = hollow ? [{ colour: now.ground }, { colour, width: 1.5 }] : [{ colour }, { colour: now.ground, width: 1 }];
  for (const i of withRoom(t, view.xs, perSecond)) {
    const [px, py] = [view.x(t[i] as number), view.y(y[i] as number) + shift];
    for (let k = 0; k < ring.length; k += 1) ring[k] = (unit[k] as number) * SYMBOL + (k % 2 ? py : px);
    pen.area([ring], fill, edge);
  }
}

/** A symbol's outline around 0, 0; made once, since hundreds are drawn in each frame. */
function ringOf(shape: string): readonly number[] {
  const there = rings.get(shape);
  if (there) return there;
  const points = outline(shape);
  const made = points.length ? points : Array.from({ length: 24 }, (_, i) => (i % 2 ? Math.sin : Math.cos)((Math.PI * (i >> 1)) / 6));
  rings.set(shape, made);
  return made;
}

const rings = new Map<string, readonly number[]>();
