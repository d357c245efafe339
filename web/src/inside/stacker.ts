/**
 * Panels below each other with one axis of time, on one canvas: places are computed when the size or the panels change, a frame while panning only draws. Lines
 * cost what the width does (`charts/lines.ts` reduces them to the least and largest value of each column of pixels), symbols what room there is for them.
 */
import { effect } from "@preact/signals";
import type { Chart, Mark, Range, Series } from "../charts/description";
import { drawData, type Theme, X_ROOM } from "../charts/draw";
import { Handles } from "../charts/handles";
import { type Area, band, View, visible } from "../charts/lines";
import type { Link } from "../charts/links";
import { CanvasPen, outline, type Pen } from "../charts/pen";
import { ticks, transform, yRange, zoomed } from "../charts/scales";
import { theme } from "../charts/theme";
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

/** What is told to the page. */
export interface Ears {
  /** Tops of the panels' heads and the height of all. */
  placed(tops: number[], height: number): void;
  /** The cursor was moved by a key. */
  loud(at: number): void;
}

export const MARGIN = { left: 60, right: 14, top: 18, head: 22, gap: 8, axis: 38 };
const SYMBOL = 4.5;
/** Of areas of one colour. */
const ALPHAS = [0.6, 0.42, 0.5, 0.34];
/** Pixels in which one symbol of a shape is drawn. */
const ROOM = 7;
const DRAG = 5;
/** Width and height of a handle, pixels. */
const HANDLE = 24;
const ZOOM = 1.25;
const Y_ROOM = 26;
/** Keys' steps of the cursor, parts of what is shown. */
const STEP = 1 / 200;
const LEAP = 1 / 8;

export class Stacker {
  private panels: Panel[] = [];
  private ys: Range[] = [];
  private scales: Range[] = [];
  private areas: Area[] = [];
  private marks: Mark[] = [];
  private whole: Range = [0, 1];
  private fits = false;
  private width = 0;
  private frame = 0;
  private readonly handles: Handles;
  private readonly sizes: ResizeObserver;
  private readonly stop: (() => void)[];
  private readonly select: HTMLElement;
  private readonly line: HTMLElement;

  /** `over` lies over the canvas and takes mouse, finger and handles; this sets its place. */
  constructor(private readonly canvas: HTMLCanvasElement, private readonly over: HTMLElement, private readonly link: Link, private readonly ears: Ears) {
    const part = (name: string) => {
      const element = document.createElement("div");
      element.className = name;
      element.hidden = true;
      return over.appendChild(element);
    };
    [this.select, this.line] = [part("stack-select"), part("stack-cursor")];
    this.handles = new Handles(over, (pixel) => this.view(0).xAt(pixel + MARGIN.left));
    this.listen();
    this.sizes = new ResizeObserver(() => this.layout());
    this.sizes.observe(canvas.parentElement as HTMLElement);
    this.stop = [
      effect(() => (void link.range.value, void theme.value, this.schedule())),
      effect(() => this.point(link.cursor.value)),
    ];
  }

  /** Shows other panels; `marks` are lines through all of them, `fits` whether the scales are those of what is shown, not of the whole time. */
  update(panels: Panel[], marks: Mark[], whole: Range, fits: boolean): void {
    [this.panels, this.marks, this.whole, this.fits] = [panels, marks, whole, fits];
    this.ys = this.scales = panels.map(({ chart }) => yRange(chart));
    this.layout();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
    this.stop.forEach((each) => each());
    this.over.replaceChildren();
  }

  /** The stretch of time that is shown. */
  shown(): Range {
    return this.link.range.peek() ?? this.whole;
  }

  /** What a key does; true where it did something. */
  key(event: KeyboardEvent): boolean {
    const at = this.link.cursor.peek();
    const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (direction && event.shiftKey) return this.zoom(1, NaN, direction * LEAP);
    if (direction) return this.move((at ?? this.middle()) + direction * STEP * this.length());
    if (event.key === "Home") return this.move(this.shown()[0]);
    if (event.key === "End") return this.move(this.shown()[1]);
    if (event.key === "+" || event.key === "=") return this.zoom(1 / ZOOM ** 2, at ?? NaN);
    if (event.key === "-") return this.zoom(ZOOM ** 2, at ?? NaN);
    if (event.key === "0") return this.reset();
    if (event.key === "Escape") this.link.cursor.value = null;
    return event.key === "Escape";
  }

  /** Puts the cursor at a time, and what is shown around it where it would not be seen. */
  move(to: number): true {
    const at = Math.min(this.whole[1], Math.max(this.whole[0], to));
    const [from, until] = this.shown();
    if (at < from || at > until) this.zoom(1, NaN, (at - this.middle()) / this.length());
    this.link.cursor.value = at;
    this.ears.loud(at);
    return true;
  }

  reset(): true {
    this.link.range.value = null;
    return true;
  }

  zoom(factor: number, around: number, shift = 0): true {
    const next = zoomed(TIME, this.shown(), this.whole, factor, around, shift);
    this.link.range.value = next[0] <= this.whole[0] && next[1] >= this.whole[1] ? null : next;
    return true;
  }

  private middle(): number {
    const [from, to] = this.shown();
    return (from + to) / 2;
  }

  private length(): number {
    const [from, to] = this.shown();
    return to - from;
  }

  // ---- places ----

  private layout(): void {
    const width = Math.max(120, this.canvas.parentElement?.clientWidth ?? 0);
    const { areas, height } = arranged(this.panels, width);
    [this.width, this.areas] = [width, areas];
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const last = areas.at(-1);
    const box = { top: MARGIN.top, height: last ? last.top + last.height - MARGIN.top : 0 };
    Object.assign(this.over.style, { left: `${MARGIN.left}px`, width: `${width - MARGIN.left - MARGIN.right}px`, top: `${box.top}px`, height: `${box.height}px` });
    this.ears.placed(areas.map((area) => area.top - MARGIN.head), height);
    this.schedule();
  }

  private view(place: number): View {
    const { chart } = this.panels[place] ?? { chart: EMPTY };
    const area = this.areas[place] ?? { left: MARGIN.left, top: 0, width: Math.max(1, this.width - MARGIN.left - MARGIN.right), height: 1 };
    return new View(area, this.shown(), this.scales[place] ?? [0, 1], transform(TIME), transform(chart.y));
  }

  // ---- drawing ----

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private draw(): void {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width / ratio, this.canvas.height / ratio);
    const pen = new CanvasPen(context);
    this.scales = this.fits ? this.panels.map((panel, place) => fitted(panel, this.shown()) ?? this.ys[place] ?? [0, 1]) : this.ys;
    this.panels.forEach((panel, place) => drawPanel(pen, panel, this.view(place), theme.peek(), place === this.panels.length - 1, this.marks));
    if (this.panels.length) drawLabels(pen, this.marks, this.view(0), theme.peek());
    if (this.panels.length) {
      this.handles.place({ ...EMPTY, marks: this.marks }, this.view(0));
      this.stagger();
    }
    this.point(this.link.cursor.peek());
  }

  /** Handles that are close to each other stand below each other, so that each has room for a finger. */
  private stagger(): void {
    const elements = [...this.over.querySelectorAll<HTMLElement>(".plot-handle")];
    const places = elements.map((each) => this.view(0).x(Number(each.getAttribute("aria-valuenow"))));
    rowsOf(places, HANDLE).forEach((row, i) => (elements[i] as HTMLElement).style.setProperty("--row", String(row)));
  }

  /** Puts the cursor's line where it belongs; nothing is drawn for that. */
  private point(at: number | null): void {
    const pixel = at === null || !this.panels.length ? NaN : this.view(0).x(at) - MARGIN.left;
    this.line.hidden = !(pixel >= -0.5 && pixel <= this.width - MARGIN.left - MARGIN.right + 0.5);
    if (!this.line.hidden) this.line.style.transform = `translateX(${pixel}px)`;
  }

  // ---- mouse and finger ----

  private listen(): void {
    const { over } = this;
    over.addEventListener("pointermove", (event) => {
      if (event.target === over && !event.buttons) this.link.cursor.value = this.at(event.clientX);
    });
    over.addEventListener("pointerleave", () => (this.link.cursor.value = null));
    over.addEventListener("dblclick", (event) => event.target === over && this.reset());
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    over.addEventListener("pointerdown", (event) => this.grab(event));
  }

  private at(clientX: number): number {
    return this.view(0).xAt(clientX - this.over.getBoundingClientRect().left + MARGIN.left);
  }

  /** The wheel zooms where the panels have the focus, or with Ctrl held; otherwise the page scrolls. */
  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && !this.over.parentElement?.contains(document.activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.zoom(1, NaN, event.deltaX / this.over.clientWidth);
    else this.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, this.at(event.clientX));
  }

  /** The mouse chooses a stretch; with Shift, with the middle button, or a finger it moves what is shown. */
  private grab(down: PointerEvent): void {
    const { over } = this;
    if (down.target !== over || (down.pointerType === "mouse" && down.button > 1)) return;
    const pans = down.pointerType !== "mouse" || down.shiftKey || down.button === 1;
    if (down.pointerType === "mouse") down.preventDefault();
    over.parentElement?.focus({ preventScroll: true });
    over.setPointerCapture(down.pointerId);
    let last = down.clientX;
    const move = (event: PointerEvent) => {
      if (pans) this.zoom(1, NaN, (last - event.clientX) / over.clientWidth);
      else this.selecting(down.clientX, event.clientX);
      last = event.clientX;
    };
    const end = (event: PointerEvent) => {
      over.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"] as const) over.removeEventListener(name, end);
      this.select.hidden = true;
      if (pans || event.type === "pointercancel") return;
      if (Math.abs(event.clientX - down.clientX) < DRAG) this.move(this.at(event.clientX));
      else this.link.range.value = zoomed(TIME, ordered(this.at(down.clientX), this.at(event.clientX)), this.whole, 1, NaN);
    };
    over.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"] as const) over.addEventListener(name, end);
  }

  private selecting(begin: number, now: number): void {
    const [from, to] = ordered(begin, now);
    const left = from - this.over.getBoundingClientRect().left;
    this.select.hidden = to - from < DRAG;
    Object.assign(this.select.style, { transform: `translateX(${left}px)`, width: `${to - from}px` });
  }
}

const TIME = { title: "time", quantity: "time" } as const;
const EMPTY: Chart = { title: "", x: TIME, y: { title: "", quantity: "number" }, series: [] };

function ordered(one: number, other: number): Range {
  return one < other ? [one, other] : [other, one];
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

/** A row for each of some places so that in a row none is closer to another than `room`. */
export function rowsOf(places: readonly number[], room: number): number[] {
  const rows = places.map(() => 0);
  const last: number[] = [];
  for (const i of places.map((_, i) => i).sort((one, other) => (places[one] as number) - (places[other] as number))) {
    const free = last.findIndex((at) => (places[i] as number) - at >= room);
    rows[i] = free >= 0 ? free : last.length;
    last[rows[i] as number] = places[i] as number;
  }
  return rows;
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
export function drawPanel(pen: Pen, panel: Panel, view: View, now: Theme, last: boolean, marks: readonly Mark[]): void {
  const { left, top, width, height } = view.area;
  const across = ticks(TIME, view.xs, Math.max(2, Math.floor(width / X_ROOM)));
  for (const { at } of across.ticks) pen.line([view.x(at), top, view.x(at), top + height], { colour: now.line, width: 1, alpha: 0.5 });
  drawScale(pen, panel, view, now);
  pen.line([left, top + height, left + width, top + height], { colour: now.soft, width: 1 });
  pen.clipped(view.area, () => {
    for (const { x, low, high, colour, place } of panel.areas ?? []) pen.area(band(x, low, high, view), { colour, alpha: ALPHAS[place % ALPHAS.length] ?? 0.5 });
  });
  drawData(pen, panel.chart, view, now);
  for (const { at } of marks) pen.line(through(view, at), { colour: now.soft, width: 1, dash: [4, 3] });
  pen.clipped({ ...view.area, top: top - SYMBOL, height: height + 2 * SYMBOL }, () => {
    for (const symbols of panel.symbols ?? []) drawSymbols(pen, symbols, view, now);
  });
  if (!last) return;
  for (const { at, text } of across.ticks) pen.text(text, view.x(at), top + height + 6, { colour: now.soft, align: "center", baseline: "top" });
  pen.text(`time (${across.unit?.name ?? "s"})`, left + width / 2, top + height + 29, { colour: now.ink, align: "center" });
}

function drawScale(pen: Pen, panel: Panel, view: View, now: Theme): void {
  const { left, width, height } = view.area;
  if (panel.rows) {
    panel.rows.forEach((name, row) => {
      pen.line([left, view.y(row), left + width, view.y(row)], { colour: now.line, width: 1, alpha: 0.6 });
      pen.text(name, left - 8, view.y(row), { colour: now.soft, size: 11, align: "right" });
    });
    return;
  }
  for (const { at, text } of ticks(panel.chart.y, view.ys, Math.max(2, Math.floor(height / Y_ROOM))).ticks) {
    const y = view.y(at);
    pen.line([left, y, left + width, y], { colour: now.line, width: 1 });
    pen.text(text, left - 8, y, { colour: now.soft, align: "right" });
  }
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
export function drawLabels(pen: Pen, marks: readonly Mark[], view: View, now: Theme, top = 0): void {
  let free = -Infinity;
  for (const { id, at, label } of [...marks].sort((one, other) => one.at - other.at)) {
    const px = view.x(at);
    const length = label.length * 6.6;
    const right = view.area.left + view.area.width;
    const from = Math.min(px, right - length);
    if (id.endsWith(END) || at < view.xs[0] || at > view.xs[1] || from < free) continue;
    pen.text(label, from, top + MARGIN.top / 2, { colour: now.ink });
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
