/** What draws: the same calls fill a canvas on the page and write the paths of an SVG file. */
import type { Area, Points } from "./lines";

export interface Stroke {
  colour: string;
  width: number;
  /** Lengths of dashes and gaps, pixels. */
  dash?: readonly number[];
  alpha?: number;
}

export interface Fill {
  colour: string;
  alpha?: number;
}

export interface Words {
  colour: string;
  size?: number;
  align?: "left" | "center" | "right";
  baseline?: "top" | "middle" | "bottom";
  bold?: boolean;
  /** Colour of a thin edge that keeps the text readable over lines. */
  halo?: string;
}

export interface Pen {
  /** Lines through points; NaN ends a piece. */
  line(points: Points, stroke: Stroke): void;
  /** Closed polygons, filled with even-odd. */
  area(rings: readonly Points[], fill: Fill, stroke?: Stroke): void;
  /** A small mark at each point. */
  dots(points: Points, radius: number, fill: Fill): void;
  text(words: string, x: number, y: number, look: Words): void;
  /** Draws only inside an area. */
  clipped(area: Area, draw: () => void): void;
}

const FONT = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
export const SIZE = 12;
/** Width of a line, and half of that of a marker, where nothing else is said. */
export const LINE_WIDTH = 2;
export const MARKER = 4;
/** Dashes of a line 2 pixels wide: solid, dashed, dotted, mixed. */
const DASHES: readonly (readonly number[])[] = [[], [9, 4], [2, 3], [9, 3, 2, 3]];

/** The dashes of a look. */
export function dashOf(dash: number, width = 2): readonly number[] {
  return (DASHES[dash] ?? []).map((each) => (each * Math.max(1, width)) / 2);
}

/** A marker's outline around 0, 0 in half widths; empty is a circle. */
export function outline(marker: string): number[] {
  return OUTLINES[marker] ?? [];
}

const T = 0.38;
const CROSS = [-T, -1, T, -1, T, -T, 1, -T, 1, T, T, T, T, 1, -T, 1, -T, T, -1, T, -1, -T, -T, -T];
const OUTLINES: Record<string, number[]> = {
  o: [],
  s: [-0.87, -0.87, 0.87, -0.87, 0.87, 0.87, -0.87, 0.87],
  D: [0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0],
  d: [0, -1.3, 0.8, 0, 0, 1.3, -0.8, 0],
  "^": [0, -1.1, 1.1, 0.9, -1.1, 0.9],
  v: [0, 1.1, 1.1, -0.9, -1.1, -0.9],
  "<": [-1.1, 0, 0.9, -1.1, 0.9, 1.1],
  ">": [1.1, 0, -0.9, -1.1, -0.9, 1.1],
  P: CROSS,
  X: turned(CROSS),
  h: corners(6, 1.05, 1.05),
  "*": corners(10, 1.35, 0.6),
};

function turned(points: number[]): number[] {
  return points.map((_, i) => ((points[i - (i % 2)] as number) + (i % 2 ? 1 : -1) * (points[i - (i % 2) + 1] as number)) * 0.75);
}

function corners(count: number, outer: number, inner: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    const [angle, radius] = [(2 * Math.PI * i) / count - Math.PI / 2, i % 2 ? inner : outer];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }).flat();
}

/** A marker at a place. */
export function marker(pen: Pen, shape: string, x: number, y: number, half: number, fill: Fill, edge?: Stroke): void {
  const points = outline(shape);
  const ring = (points.length ? points : corners(16, 1, 1)).map((each, i) => (i % 2 ? y : x) + each * half);
  pen.area([ring], fill, edge);
}

/** Draws on a canvas whose pixels are CSS pixels (its context is scaled already). */
export class CanvasPen implements Pen {
  constructor(private readonly to: CanvasRenderingContext2D) {}

  line(points: Points, stroke: Stroke): void {
    this.to.beginPath();
    this.path(points);
    this.stroke(stroke);
  }

  area(rings: readonly Points[], fill: Fill, stroke?: Stroke): void {
    this.to.beginPath();
    for (const ring of rings) {
      this.path(ring);
      this.to.closePath();
    }
    this.to.fillStyle = fill.colour;
    this.to.globalAlpha = fill.alpha ?? 1;
    this.to.fill("evenodd");
    this.to.globalAlpha = 1;
    if (stroke) this.stroke(stroke);
  }

  dots(points: Points, radius: number, fill: Fill): void {
    this.to.fillStyle = fill.colour;
    this.to.globalAlpha = fill.alpha ?? 1;
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i] as number, points[i + 1] as number];
      this.to.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
    this.to.globalAlpha = 1;
  }

  text(words: string, x: number, y: number, look: Words): void {
    this.to.font = `${look.bold ? "600 " : ""}${look.size ?? SIZE}px ${FONT}`;
    this.to.textAlign = look.align ?? "left";
    this.to.textBaseline = look.baseline === "top" ? "top" : look.baseline === "bottom" ? "bottom" : "middle";
    if (look.halo) {
      this.to.strokeStyle = look.halo;
      this.to.lineWidth = 3;
      this.to.lineJoin = "round";
      this.to.setLineDash([]);
      this.to.strokeText(words, x, y);
    }
    this.to.fillStyle = look.colour;
    this.to.fillText(words, x, y);
  }

  clipped({ left, top, width, height }: Area, draw: () => void): void {
    this.to.save();
    this.to.beginPath();
    this.to.rect(left, top, width, height);
    this.to.clip();
    draw();
    this.to.restore();
  }

  private path(points: Points): void {
    let down = false;
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i] as number, points[i + 1] as number];
      if (y !== y || x !== x) down = false;
      else if (down) this.to.lineTo(x, y);
      else {
        this.to.moveTo(x, y);
        down = true;
      }
    }
  }

  private stroke(stroke: Stroke): void {
    this.to.strokeStyle = stroke.colour;
    this.to.lineWidth = stroke.width;
    this.to.lineJoin = "round";
    this.to.setLineDash((stroke.dash ?? []) as number[]);
    this.to.globalAlpha = stroke.alpha ?? 1;
    this.to.stroke();
    this.to.globalAlpha = 1;
  }
}

/** A pen on a canvas of this size in CSS pixels, wiped clean; null where the browser has none. */
export function canvasPen(canvas: HTMLCanvasElement, width: number, height: number): CanvasPen | null {
  const ratio = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return new CanvasPen(context);
}

/** Writes SVG elements; every text and colour is escaped. */
export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private clips = 0;

  /** A whole file of this size on a ground of this colour. */
  file(width: number, height: number, ground: string, title: string): string {
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(FONT)}">`;
    return `${head}<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${escaped(ground)}"/>${this.parts.join("")}</svg>\n`;
  }

  line(points: Points, stroke: Stroke): void {
    const path = data(points, false);
    if (path) this.parts.push(`<path d="${path}" fill="none"${strokeOf(stroke)}/>`);
  }

  area(rings: readonly Points[], fill: Fill, stroke?: Stroke): void {
    const path = rings.map((ring) => data(ring, true)).join("");
    if (path) this.parts.push(`<path d="${path}" fill-rule="evenodd"${fillOf(fill)}${stroke ? strokeOf(stroke) : ""}/>`);
  }

  dots(points: Points, radius: number, fill: Fill): void {
    let path = "";
    for (let i = 0; i < points.length; i += 2) {
      if (Number.isFinite(points[i]) && Number.isFinite(points[i + 1])) path += `M${short(points[i] as number)} ${short(points[i + 1] as number)}h0`;
    }
    const alpha = fill.alpha === undefined ? "" : ` stroke-opacity="${fill.alpha}"`;
    if (path)
      this.parts.push(
        `<path d="${path}" fill="none" stroke="${escaped(fill.colour)}" stroke-width="${2 * radius}" stroke-linecap="square"${alpha}/>`,
      );
  }

  text(words: string, x: number, y: number, look: Words): void {
    const anchor = { left: "start", center: "middle", right: "end" }[look.align ?? "left"];
    const size = look.size ?? SIZE;
    const down = { top: 0.8, middle: 0.35, bottom: -0.2 }[look.baseline ?? "middle"] * size;
    const halo = look.halo ? ` stroke="${escaped(look.halo)}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"` : "";
    const place = `x="${short(x)}" y="${short(y + down)}" font-size="${size}" text-anchor="${anchor}"`;
    this.parts.push(`<text ${place}${look.bold ? ' font-weight="600"' : ""} fill="${escaped(look.colour)}"${halo}>${escaped(words)}</text>`);
  }

  clipped({ left, top, width, height }: Area, draw: () => void): void {
    this.clips += 1;
    const rect = `<rect x="${short(left)}" y="${short(top)}" width="${short(width)}" height="${short(height)}"/>`;
    this.parts.push(`<clipPath id="clip${this.clips}">${rect}</clipPath><g clip-path="url(#clip${this.clips})">`);
    draw();
    this.parts.push("</g>");
  }
}

/** Text that is safe inside an element and inside an attribute; characters that XML does not have are replaced. */
export function escaped(text: string): string {
  const clean = text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  return clean.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

function data(points: Points, close: boolean): string {
  let [path, down] = ["", false];
  for (let i = 0; i < points.length; i += 2) {
    const [x, y] = [points[i] as number, points[i + 1] as number];
    if (!Number.isFinite(x) || !Number.isFinite(y)) down = false;
    else {
      path += `${down ? "L" : "M"}${short(x)} ${short(y)}`;
      down = true;
    }
  }
  return path && close ? `${path}Z` : path;
}

function strokeOf({ colour, width, dash, alpha }: Stroke): string {
  const dashes = dash?.length ? ` stroke-dasharray="${dash.map(short).join(" ")}"` : "";
  return ` stroke="${escaped(colour)}" stroke-width="${short(width)}" stroke-linejoin="round"${dashes}${alpha === undefined ? "" : ` stroke-opacity="${alpha}"`}`;
}

function fillOf({ colour, alpha }: Fill): string {
  return ` fill="${escaped(colour)}"${alpha === undefined ? "" : ` fill-opacity="${alpha}"`}`;
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}
