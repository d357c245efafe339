/** Draws what a chart describes: its data inside the axes (`drawData`), and a whole figure with axes and legend (`drawFigure`) for files. */
import type { Axis, Chart, Range, Series, Span } from "./description";
import { band, dense, envelope, marked, trace, View, type Area } from "./lines";
import { dashOf, LINE_WIDTH, MARKER, marker, type Pen, SIZE, type Words } from "./pen";
import { ticks, titleOf, transform, xRange, yRange } from "./scales";
import type { Unit } from "./units";

/** Colours of the page, light or dark. */
export interface Theme {
  ground: string;
  ink: string;
  soft: string;
  line: string;
}

const BAND_ALPHA = 0.2;
const STRIP_ALPHA = 0.3;
const BEFORE_ALPHA = 0.3;
/** Pixels between the single runs of two series at the same x. */
const STRIP_STEP = 3;
export const MARGIN = { left: 56, right: 18, top: 34, bottom: 46 };
const LEGEND_ROW = 20;
/** Mean width of a character. */
const CHARACTER = SIZE * 0.56;
/** Pixels for a tick's text. */
export const X_ROOM = 68;
const Y_ROOM = 28;

/** The view of a chart in an area; ranges that are not given are whole. */
export function viewOf(chart: Chart, area: Area, xs?: Range | null, ys?: Range | null): View {
  return new View(area, xs ?? xRange(chart), ys ?? yRange(chart), transform(chart.x), transform(chart.y));
}

/** Everything inside the axes: stretches, single runs, bands, lines, markers, marks. */
export function drawData(pen: Pen, chart: Chart, view: View, theme: Theme): void {
  pen.clipped(view.area, () => {
    // Those of one colour in one piece: where hundreds lie on each other they are as pale as one.
    for (const colour of new Set(chart.spans?.map((span) => span.colour))) {
      const { top, height } = view.area;
      const rings = joined(chart.spans ?? [], colour, view).map(([x0, x1]) => [x0, top, x1, top, x1, top + height, x0, top + height]);
      pen.area(rings, { colour, alpha: 0.18 });
    }
    for (const series of chart.before ?? [])
      pen.line(trace(series.x, series.y, view), { colour: series.look.colour, width: LINE_WIDTH, alpha: BEFORE_ALPHA });
    chart.series.forEach((series, place) => drawStrip(pen, series, view, place - (chart.series.length - 1) / 2));
    for (const series of chart.series) drawBand(pen, series, view);
    for (const series of chart.series) drawLine(pen, series, view);
  });
  drawMarks(pen, chart, view, theme);
  chart.series.forEach((series, place) => drawMarkers(pen, series, view, theme, place));
}

function drawStrip(pen: Pen, { strip, look }: Series, view: View, shift: number): void {
  if (!strip) return;
  const points: number[] = [];
  for (let i = 0; i < strip.x.length; i += 1) points.push(view.x(strip.x[i] as number) + shift * STRIP_STEP, view.y(strip.y[i] as number));
  pen.dots(points, 1.25, { colour: look.colour, alpha: STRIP_ALPHA });
}

function drawBand(pen: Pen, { x, low, high, look }: Series, view: View): void {
  if (!low || !high) return;
  for (const piece of band(x, low, high, view)) pen.area([piece], { colour: look.colour, alpha: BAND_ALPHA });
  if (dense(x, view)) return;
  for (const i of marked(x, view)) {
    const px = view.x(x[i] as number);
    const whisker = [px, view.y(low[i] as number), px, view.y(high[i] as number)];
    if (whisker.every(Number.isFinite)) pen.line(whisker, { colour: look.colour, width: 1, alpha: 0.6 });
  }
}

function drawLine(pen: Pen, { x, y, look, kind, width = LINE_WIDTH }: Series, view: View): void {
  if (kind === "points") return;
  const dash = dashOf(look.dash, width);
  if (dense(x, view)) for (const piece of envelope(x, y, view, width, dash)) pen.area([piece], { colour: look.colour });
  else pen.line(trace(x, y, view, kind === "step"), { colour: look.colour, width, dash });
}

function drawMarkers(pen: Pen, series: Series, view: View, theme: Theme, turn: number): void {
  const { look, kind, markers, x, y } = series;
  if (kind !== "points" && !markers) return;
  const { left, top, width, height } = view.area;
  let [lastX, lastY] = [NaN, NaN];
  for (const i of kind === "points" ? x.keys() : marked(x, view, turn)) {
    const [px, py] = [view.x(x[i] as number), view.y(y[i] as number)];
    // A marker on top of the one before would not be seen.
    if (Math.abs(px - lastX) < 1 && Math.abs(py - lastY) < 1) continue;
    [lastX, lastY] = [px, py];
    if (px < left - 0.5 || px > left + width + 0.5 || !(py >= top - 0.5 && py <= top + height + 0.5)) continue;
    marker(pen, look.marker, px, py, MARKER, { colour: look.colour }, { colour: theme.ground, width: 1 });
  }
}

/** The stretches of one colour in pixels, each a pixel wide at least, those that touch as one. */
export function joined(spans: readonly Span[], colour: string, view: Pick<View, "x">): Range[] {
  const ends = spans
    .filter((span) => span.colour === colour)
    .map(({ from, to }): [number, number] => [view.x(from), Math.max(view.x(to), view.x(from) + 1)]);
  const whole: [number, number][] = [];
  for (const [from, to] of ends.sort((one, other) => one[0] - other[0])) {
    const last = whole.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else whole.push([from, to]);
  }
  return whole;
}

function drawMarks(pen: Pen, chart: Chart, view: View, theme: Theme): void {
  const { top, height } = view.area;
  const marks = [...(chart.marks ?? [])].sort((one, other) => Number(other.kind === "here") - Number(one.kind === "here"));
  // Labels stand above the axes where there is room beside the title of y, otherwise inside.
  const rows: Taken[] = [[[0, 20 + (chart.y.title.length + 9) * CHARACTER]], []];
  for (const { at, label, kind, colour = kind === "here" ? theme.ink : theme.soft } of marks) {
    const px = view.x(at);
    if (!(px >= view.area.left - 0.5 && px <= view.area.left + view.area.width + 0.5)) continue;
    pen.line([px, top, px, top + height], kind === "here" ? { colour, width: 1.5 } : { colour, width: 1, dash: [4, 3] });
    rows.some((taken, row) => drawLabel(pen, label, px, view.area, { colour, halo: theme.ground }, taken, row));
  }
}

type Taken = [number, number][];

/** Writes a mark's label in a row where no other label is; false where one is. */
function drawLabel(pen: Pen, label: string, px: number, area: Area, look: Words, taken: Taken, row: number): boolean {
  const length = label.length * CHARACTER + 10;
  const right = px + length < area.left + area.width + MARGIN.right;
  const [from, to] = right ? [px, px + length] : [px - length, px];
  if (taken.some(([begin, end]) => from < end && to > begin)) return false;
  taken.push([from, to]);
  const [above, inside] = [area.top - 9, area.top + 9];
  pen.text(label, px + (row ? (right ? 6 : -6) : right ? -2 : 2), row ? inside : above, { ...look, align: right ? "left" : "right" });
  return true;
}

/** A whole figure: the y axis' title above, axes, data, and a legend with samples of the lines. */
export function drawFigure(pen: Pen, chart: Chart, width: number, height: number, theme: Theme, xs?: Range | null, ys?: Range | null): void {
  const rows = legendRows(chart, width);
  const area = {
    left: MARGIN.left,
    top: MARGIN.top,
    width: width - MARGIN.left - MARGIN.right,
    height: height - MARGIN.top - MARGIN.bottom - rows.length * LEGEND_ROW,
  };
  const view = viewOf(chart, area, xs, ys);
  drawAxes(pen, chart, view, theme);
  drawData(pen, chart, view, theme);
  rows.forEach((row, place) => drawLegendRow(pen, row, MARGIN.left, area.top + area.height + MARGIN.bottom + place * LEGEND_ROW, theme));
}

/** Grid, axes, ticks and titles. */
export function drawAxes(pen: Pen, chart: Pick<Chart, "x" | "y">, view: View, theme: Theme): void {
  const { left, top, width, height } = view.area;
  const across = ticks(chart.x, view.xs, Math.max(2, Math.floor(width / X_ROOM)));
  const unit = drawScale(pen, chart.y, view, theme);
  pen.line([left, top + height, left + width, top + height], { colour: theme.soft, width: 1 });
  for (const { at, text } of across.ticks) {
    const x = view.x(at);
    pen.line([x, top + height, x, top + height + 5], { colour: theme.soft, width: 1 });
    pen.text(text, x, top + height + 8, { colour: theme.soft, align: "center", baseline: "top" });
  }
  pen.text(titleOf(chart.y, unit), 8, top - 18, { colour: theme.ink });
  pen.text(titleOf(chart.x, across.unit), left + width / 2, top + height + 34, { colour: theme.ink, align: "center" });
}

/** The lines and texts of the axis of y; returns the unit of its texts. */
export function drawScale(pen: Pen, axis: Axis, view: View, theme: Theme): Unit | null {
  const { left, width, height } = view.area;
  const up = ticks(axis, view.ys, Math.max(2, Math.floor(height / Y_ROOM)));
  for (const { at, text } of up.ticks) {
    const y = view.y(at);
    pen.line([left, y, left + width, y], { colour: theme.line, width: 1 });
    pen.text(text, left - 8, y, { colour: theme.soft, align: "right" });
  }
  return up.unit;
}

function legendRows(chart: Chart, width: number): Series[][] {
  const rows: Series[][] = [];
  let room = 0;
  for (const series of chart.series) {
    const need = entryWidth(series);
    if (room < need || !rows.length) {
      rows.push([]);
      room = width - MARGIN.left - MARGIN.right;
    }
    rows.at(-1)?.push(series);
    room -= need;
  }
  return rows;
}

function entryWidth(series: Series): number {
  return 34 + series.label.length * SIZE * 0.6 + 18;
}

function drawLegendRow(pen: Pen, row: Series[], left: number, top: number, theme: Theme): void {
  let x = left;
  for (const series of row) {
    drawSample(pen, series, x, top + LEGEND_ROW / 2, theme);
    pen.text(series.label, x + 34, top + LEGEND_ROW / 2, { colour: theme.ink });
    x += entryWidth(series);
  }
}

/** A short piece of a series' line with its marker. */
function drawSample(pen: Pen, { look, kind, width = LINE_WIDTH }: Series, x: number, y: number, theme: Theme): void {
  if (kind !== "points") pen.line([x, y, x + 28, y], { colour: look.colour, width, dash: dashOf(look.dash, width) });
  marker(pen, look.marker, x + 14, y, MARKER, { colour: look.colour }, { colour: theme.ground, width: 1 });
}
