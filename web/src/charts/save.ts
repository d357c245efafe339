/** Files of what a chart shows: PNG, SVG and CSV, made on the page and handed to the browser as downloads. */
import type { Chart, Range } from "./description";
import { drawFigure, type Theme } from "./draw";
import { CanvasPen, type Pen, SvgPen } from "./pen";
import { inBase } from "./units";

/** Size of a figure in a file, pixels. */
export const FIGURE = { width: 900, height: 520 };
/** Pixels of a PNG for each of a figure. */
const SHARP = 2;
/** How long the browser may take to begin a download, ms. */
const KEEP = 10_000;

/** What draws a whole figure of a size. */
export type Figure = (pen: Pen, width: number, height: number, theme: Theme) => void;

/** The figure of a chart, of the stretch of x that is shown. */
export function figure(chart: Chart, shown?: Range | null): Figure {
  return (pen, width, height, theme) => drawFigure(pen, chart, width, height, theme, shown);
}

/** An SVG file's text. */
export function svgOf(title: string, draw: Figure, theme: Theme, size = FIGURE): string {
  const pen = new SvgPen();
  draw(pen, size.width, size.height, theme);
  return pen.file(size.width, size.height, theme.ground, title);
}

/** Rows as CSV (RFC 4180) with one header line; what begins like a formula is quoted with an apostrophe, so that no spreadsheet runs it. */
export function csvOf(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => cells.map(cell).join(",");
  return `${[columns, ...rows].map(line).join("\r\n")}\r\n`;
}

function cell(value: string | number): string {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** The table behind a chart: a row for each value of each series, in base units. */
export function rowsOf(chart: Chart): { columns: string[]; rows: (string | number)[][] } {
  const [x, y] = [inBase(chart.x.title, chart.x.quantity), inBase(chart.y.title, chart.y.quantity)];
  const rows = chart.series.flatMap((series) =>
    Array.from(series.x, (at, i) => [series.label, at, series.y[i] ?? NaN, series.low?.[i] ?? NaN, series.high?.[i] ?? NaN, series.n?.[i] ?? NaN]),
  );
  return { columns: ["series", x, y, "low", "high", "runs"], rows };
}

export function saveSvg(name: string, title: string, draw: Figure, theme: Theme, size = FIGURE): void {
  save(`${name}.svg`, new Blob([svgOf(title, draw, theme, size)], { type: "image/svg+xml" }));
}

export function saveCsv(name: string, columns: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  save(`${name}.csv`, new Blob([csvOf(columns, rows)], { type: "text/csv" }));
}

export function savePng(name: string, draw: Figure, theme: Theme, size = FIGURE): void {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [size.width * SHARP, size.height * SHARP];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(SHARP, SHARP);
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, size.width, size.height);
  draw(new CanvasPen(context), size.width, size.height, theme);
  canvas.toBlob((blob) => blob && save(`${name}.png`, blob), "image/png");
}

/** Hands a file to the browser as a download. */
export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name.replace(/[^\w.-]+/g, "-");
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), KEEP);
}
