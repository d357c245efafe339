/** Draws a map with axes, lines, marks and legend: on the page's canvas and into files alike. */
import { chartAxis } from "../axes/axes";
import type { Chart, Range } from "../charts/description";
import { drawAxes, type Theme } from "../charts/draw";
import { type Area, View } from "../charts/lines";
import { type Pen, SIZE } from "../charts/pen";
import { transform } from "../charts/scales";
import { format, plain } from "../charts/units";
import { QUANTITIES } from "../server/contract";
import { placeOn, plainScale, ratioScale, type Scale } from "./colour";
import { type Grid, isoline, levels, type Line, undecided } from "./grid";

/** What is drawn beside the cells. */
export interface Marks {
  /** Where the sliders are, SI. */
  here: { x: number; y: number } | null;
  /** The cell under the cursor; -1 where there is none. */
  cell: number;
}

/** A map that is ready to be drawn: colours and lines are made once for each grid. */
export interface Picture {
  grid: Grid;
  scale: Scale;
  lines: { level: number; lines: Line[] }[];
  chart: Pick<Chart, "x" | "y">;
}

/** Edges of the cells along each axis and the view of them, pixels. */
export interface Layout {
  area: Area;
  view: View;
  columns: number[];
  rows: number[];
}

const MARGIN = { left: 56, right: 18, top: 34, bottom: 50 };
/** Heights of the legend beside and below each other, and the width from which there is room beside. */
const [LEGEND, LEGEND_NARROW, WIDE] = [74, 106, 620];
/** Width of a row of the legend below. */
const ROW = 310;
/** Pixels between hatches. */
const HATCH = 7;
/** The area's width over its height. */
const SHAPE = 1.8;
const LABEL_APART = 60;
/** Least width of an area whose lines have labels. */
const LABELLED = 420;

/** Height of a map of a width. */
export function heightOf(width: number): number {
  const area = width - MARGIN.left - MARGIN.right;
  return Math.round(Math.min(560, Math.max(240, area / SHAPE))) + MARGIN.top + MARGIN.bottom + legendHeight(width);
}

function legendHeight(width: number): number {
  return width >= WIDE ? LEGEND : LEGEND_NARROW;
}

/** Makes a grid ready to be drawn. `colour`: that of a congestion control. */
export function picture(grid: Grid, colour: (label: string) => string, theme: Theme): Picture {
  const scale = grid.quantity === "ratio" ? ratioScale(colour(grid.first), colour(grid.second), theme) : plainScale(grid.quantity, grid.value);
  const lines = levels(grid).map((level) => ({ level, lines: isoline(grid, level) }));
  return { grid, scale, lines, chart: { x: chartAxis(grid.x, grid.xs), y: chartAxis(grid.y, grid.ys) } };
}

/** Where everything is in a figure of a size. */
export function layout({ grid, chart }: Picture, width: number, height: number): Layout {
  const area = {
    left: MARGIN.left,
    top: MARGIN.top,
    width: width - MARGIN.left - MARGIN.right,
    height: height - MARGIN.top - MARGIN.bottom - legendHeight(width),
  };
  const [tx, ty] = [transform(chart.x), transform(chart.y)];
  const [across, up] = [edges(grid.xs, tx), edges(grid.ys, ty)];
  const view = new View(area, ends(across), ends(up), tx, ty);
  return { area, view, columns: across.map((edge) => Math.round(view.x(edge))), rows: up.map((edge) => Math.round(view.y(edge))) };
}

/** The edges of cells whose centres are these values: halfway between two, and as far beyond the first and the last. */
export function edges(centres: ArrayLike<number>, { to, from }: { to(value: number): number; from(place: number): number }): number[] {
  const places = Array.from(centres, to);
  if (places.length < 2) return [from((places[0] ?? 0) - 0.5), from((places[0] ?? 0) + 0.5)];
  const between = places.slice(1).map((place, i) => (place + (places[i] as number)) / 2);
  const [first, last] = [2 * (places[0] as number) - (between[0] as number), 2 * (places.at(-1) as number) - (between.at(-1) as number)];
  return [first, ...between, last].map(from);
}

function ends(edge: number[]): Range {
  return [edge[0] as number, edge.at(-1) as number];
}

/** The cell at a pixel; -1 outside. */
export function cellAt({ columns, rows, area }: Layout, x: number, y: number): number {
  if (x < area.left || x >= area.left + area.width || y <= area.top || y > area.top + area.height) return -1;
  const column = columns.findIndex((edge, i) => i > 0 && x < edge) - 1;
  const row = rows.findIndex((edge, i) => i > 0 && y > edge) - 1;
  return column < 0 || row < 0 ? -1 : row * (columns.length - 1) + column;
}

/** Draws everything. */
export function drawMap(pen: Pen, image: Picture, marks: Marks, width: number, height: number, theme: Theme): void {
  const place = layout(image, width, height);
  pen.clipped(place.area, () => {
    drawCells(pen, image, place, theme);
    drawUnknown(pen, image, place, theme);
    drawUndecided(pen, image, place, theme);
    drawLines(pen, image, place, marks.here, theme);
  });
  drawAxes(pen, image.chart, place.view, { ...theme, line: "transparent" });
  drawHere(pen, marks.here, place, theme);
  if (marks.cell >= 0) {
    const outline = box(place, marks.cell);
    for (const [colour, width] of [
      [theme.ground, 5],
      [theme.ink, 2],
    ] as const)
      pen.area([outline], { colour, alpha: 0 }, { colour, width });
  }
  drawLegend(pen, image, MARGIN.left, height - legendHeight(width) + 4, width, theme);
}

/** The outline of a cell. */
function box({ columns, rows }: Layout, cell: number): number[] {
  const width = columns.length - 1;
  const [i, j] = [cell % width, Math.floor(cell / width)];
  const [left, right, bottom, top] = [columns[i], columns[i + 1], rows[j], rows[j + 1]] as [number, number, number, number];
  return [left, top, right, top, right, bottom, left, bottom];
}

/** Fills the cells, neighbours in a row that have one colour together. Their edges are whole pixels, so that no ground shows between them. */
function drawCells(pen: Pen, { grid, scale }: Picture, { columns, rows }: Layout, theme: Theme): void {
  const width = grid.xs.length;
  for (let j = 0; j < grid.ys.length; j += 1) {
    for (let i = 0; i < width;) {
      const colour = colourOf(grid, scale, j * width + i);
      let end = i + 1;
      while (end < width && colourOf(grid, scale, j * width + end) === colour) end += 1;
      const [left, right] = [columns[i] as number, columns[end] as number];
      const [bottom, top] = [rows[j] as number, rows[j + 1] as number];
      if (colour) pen.area([[left, top, right, top, right, bottom, left, bottom]], { colour });
      else pen.area([[left, top, right, top, right, bottom, left, bottom]], { colour: theme.line, alpha: 0.35 });
      i = end;
    }
  }
}

function colourOf(grid: Grid, scale: Scale, at: number): string {
  const value = grid.shown[at] as number;
  return Number.isNaN(value) ? "" : scale.at(value);
}

/** Whether a cell has no number of its own yet. */
function open(grid: Grid, at: number): boolean {
  return !((grid.n[at] as number) > 0) || Number.isNaN(grid.value[at]);
}

/** Hatches what has no number yet. */
function drawUnknown(pen: Pen, { grid }: Picture, place: Layout, theme: Theme): void {
  const strokes: number[] = [];
  for (let at = 0; at < grid.n.length; at += 1) {
    if (open(grid, at)) strokes.push(...hatches(box(place, at)));
  }
  pen.line(strokes, { colour: theme.soft, width: 1, alpha: 0.35 });
}

/** Rising strokes through a box, in line with those of its neighbours; NaN between them. */
export function hatches(corners: readonly number[]): number[] {
  const [left, top, right, bottom] = [corners[0], corners[1], corners[2], corners[5]] as [number, number, number, number];
  const strokes: number[] = [];
  for (let k = Math.ceil((left + top) / HATCH); k * HATCH < right + bottom; k += 1) {
    const sum = k * HATCH;
    const [x0, x1] = [Math.max(left, sum - bottom), Math.min(right, sum - top)];
    if (x1 > x0) strokes.push(x0, sum - x0, x1, sum - x1, NaN, NaN);
  }
  return strokes;
}

/** A dot in each cell whose interval has 1 in it. */
function drawUndecided(pen: Pen, { grid }: Picture, { columns, rows }: Layout, theme: Theme): void {
  const width = grid.xs.length;
  const points: number[] = [];
  for (let at = 0; at < grid.value.length; at += 1) {
    if (!undecided(grid, at)) continue;
    const [i, j] = [at % width, Math.floor(at / width)];
    points.push(((columns[i] as number) + (columns[i + 1] as number)) / 2, ((rows[j] as number) + (rows[j + 1] as number)) / 2);
  }
  pen.dots(points, 1.25, { colour: theme.ink, alpha: 0.6 });
}

/** The lines along levels, the first one strong; dashed while cells have not run. */
function drawLines(pen: Pen, { grid, lines }: Picture, place: Layout, here: Marks["here"], theme: Theme): void {
  const dash = dashOf(grid);
  lines.forEach(({ level, lines: pieces }, rank) => {
    let labelled = false;
    for (const piece of pieces) {
      if (piece.length < 3) continue;
      const points = piece.flatMap(([x, y]) => [between(place.columns, x), between(place.rows, y)]);
      pen.line(points, { colour: theme.ground, width: rank ? 2.5 : 4.5, alpha: 0.6 });
      pen.line(points, { colour: theme.ink, width: rank ? 1 : 2, dash });
      const at = labelled || piece.length <= 8 ? null : roomOn(points, place, here);
      if (!at) continue;
      pen.text(levelText(grid, level), at[0] + 6, at[1] - 8, { colour: theme.ink, size: 11, bold: true, halo: theme.ground });
      labelled = true;
    }
  });
}

/** Lines are dashed while cells have not run. */
function dashOf(grid: Grid): number[] {
  return grid.known < grid.value.length ? [5, 4] : [];
}

/** A point of a line beside which its level can stand: neither at the edge nor over the place of the sliders. */
function roomOn(points: number[], { area, view }: Layout, here: Marks["here"]): [number, number] | null {
  if (area.width < LABELLED) return null;
  const [hx, hy] = here ? [view.x(here.x), view.y(here.y)] : [NaN, NaN];
  for (const share of [0.5, 0.3, 0.7, 0.15, 0.85]) {
    const at = 2 * Math.floor((points.length / 2 - 1) * share);
    const [x, y] = [points[at] as number, points[at + 1] as number];
    const inside =
      x > area.left + LABEL_APART / 2 && x < area.left + area.width - LABEL_APART && y > area.top + 20 && y < area.top + area.height - 14;
    if (inside && !(x > hx - LABEL_APART && x < hx + 2 * LABEL_APART && Math.abs(y - hy) < 30)) return [x, y];
  }
  return null;
}

/** A level in words. */
function levelText(grid: Grid, level: number): string {
  return grid.quantity === "ratio" ? (level === 1 ? "equal" : `${plain(level)} ×`) : valueText(grid, level);
}

/** A value of the map with its unit. */
export function valueText(grid: Pick<Grid, "quantity">, value: number): string {
  if (grid.quantity === "ratio") return Number.isFinite(value) ? `${plain(value)} ×` : "–";
  return format(value, QUANTITIES[grid.quantity].quantity);
}

/** From units of cells to pixels. */
function between(edge: readonly number[], at: number): number {
  const cell = Math.min(edge.length - 2, Math.max(0, Math.floor(at)));
  return (edge[cell] as number) + (at - cell) * ((edge[cell + 1] as number) - (edge[cell] as number));
}

/** A ring with a cross where the sliders are. */
function drawHere(pen: Pen, here: Marks["here"], { view, area }: Layout, theme: Theme): void {
  if (!here) return;
  const [x, y] = [view.x(here.x), view.y(here.y)];
  if (!(x >= area.left && x <= area.left + area.width && y >= area.top && y <= area.top + area.height)) return;
  const ring = Array.from({ length: 24 }, (_, i) => [x + 7 * Math.cos((i * Math.PI) / 12), y + 7 * Math.sin((i * Math.PI) / 12)]).flat();
  const cross = [x - 13, y, x - 4, y, NaN, NaN, x + 4, y, x + 13, y, NaN, NaN, x, y - 13, x, y - 4, NaN, NaN, x, y + 4, x, y + 13];
  for (const [colour, width] of [
    [theme.ground, 5],
    [theme.ink, 2],
  ] as const) {
    pen.area([ring], { colour, alpha: 0 }, { colour, width });
    pen.line(cross, { colour, width });
  }
  const right = x < area.left + area.width - 110;
  pen.text("you are here", x + (right ? 16 : -16), y - 12, { colour: theme.ink, align: right ? "left" : "right", bold: true, halo: theme.ground });
}

/** The colours with numbers, and what the other marks are. */
function drawLegend(pen: Pen, { grid, scale, lines }: Picture, left: number, top: number, width: number, theme: Theme): void {
  const length = Math.min(360, width - MARGIN.left - MARGIN.right);
  const steps = 60;
  for (let i = 0; i < steps; i += 1) {
    const [x0, x1] = [left + (i / steps) * length, left + ((i + 1) / steps) * length + 0.5];
    pen.area([[x0, top, x1, top, x1, top + 12, x0, top + 12]], { colour: scale.share((i + 0.5) / steps) });
  }
  scale.ticks.forEach((tick, i) => {
    const x = left + placeOn(scale, tick) * length;
    const align = i === 0 ? "left" : i === scale.ticks.length - 1 ? "right" : "center";
    pen.text(tickText(grid, tick), x, top + 22, { colour: theme.soft, size: 11, align });
  });
  if (grid.quantity === "ratio") {
    pen.text(`← ${grid.second} carries more`, left, top + 40, { colour: theme.soft, size: 11 });
    pen.text(`${grid.first} carries more →`, left + length, top + 40, { colour: theme.soft, size: 11, align: "right" });
  }
  const beside = width >= WIDE;
  drawKey(
    pen,
    grid,
    beside ? left + length + 24 : left,
    beside ? top + 6 : top + 62,
    lines.map(({ level, lines: pieces }, rank) => ({ text: levelText(grid, level), rank, isDrawn: pieces.some((piece) => piece.length >= 3) })),
    theme,
    beside,
  );
}

function tickText(grid: Grid, value: number): string {
  return grid.quantity === "ratio" ? (value < 1 ? `1/${plain(1 / value)}` : value === 1 ? "1" : `${plain(value)} ×`) : valueText(grid, value);
}

/** What the marks are: each kind of line as the map has it, then dots and hatches; in two rows where there is no room beside. */
function drawKey(
  pen: Pen,
  grid: Grid,
  x: number,
  top: number,
  levels: { text: string; rank: number; isDrawn: boolean }[],
  theme: Theme,
  wide: boolean,
): void {
  let [at, y] = [x, top];
  const entry = (words: string, draw: (x: number, y: number) => void) => {
    const size = 26 + words.length * SIZE * 0.53 + 12;
    if (!wide && at + size > x + ROW) [at, y] = [x, y + 18];
    draw(at, y);
    pen.text(words, at + 26, y, { colour: theme.soft, size: 11 });
    at += size;
  };
  for (const strong of [true, false]) {
    const named = levels.filter(({ rank, isDrawn }) => isDrawn && (rank === 0) === strong).map(({ text }) => text);
    const line = { colour: theme.ink, width: strong ? 2 : 1, dash: dashOf(grid) };
    if (named.length) entry(named.join(", "), (left, y) => pen.line([left, y, left + 20, y], line));
  }
  if (grid.quantity === "ratio")
    entry(wide ? "interval has 1 in it" : "undecided", (left, y) => pen.dots([left + 10, y], 1.5, { colour: theme.ink, alpha: 0.7 }));
  if (grid.value.some((_, at) => open(grid, at))) {
    entry("not measured yet", (left, y) =>
      pen.line(hatches([left, y - 6, left + 20, y - 6, left + 20, y + 6, left, y + 6]), { colour: theme.soft, width: 1, alpha: 0.6 }),
    );
  }
}
