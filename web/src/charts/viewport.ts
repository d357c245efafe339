/**
 * What every plot on the page has: a canvas that is drawn at most once a frame, one stretch of x with a cursor, which plots of the same link share, and what
 * mouse, finger and keys do to both. What is drawn, and where, says a `Scene`.
 */
import { effect } from "@preact/signals";
import type { Axis, Mark, Range } from "./description";
import type { Theme } from "./draw";
import { dragged, Handles } from "./handles";
import { type Area, View } from "./lines";
import type { Link } from "./links";
import { canvasPen, type Pen } from "./pen";
import { transform, zoomed } from "./scales";
import { theme } from "./theme";

export interface Scene {
  readonly x: Axis;
  /** All of x. */
  readonly whole: Range;
  /** Lines across everything; those that can be moved get handles. */
  readonly marks: readonly Mark[];
  /** In a width, the box in which mouse and finger are read, as wide as the axis of x, and the height of all. */
  arrange(width: number): { box: Area; height: number };
  draw(pen: Pen, shown: Range, theme: Theme): void;
  /** Where an arrow key leads the cursor. */
  step(from: number | null, direction: 1 | -1, view: View): number | null;
  /** The cursor was moved by a key. */
  aloud(at: number): void;
  /** A click at a value of x. */
  pick(at: number): void;
}

const ZOOM = 1.25;
/** Part of what is shown by which an arrow key with Shift moves it. */
const LEAP = 1 / 8;
/** Pixels of a movement that is a drag and no click. */
const DRAG = 5;
/** A click this soon after a drag is its end, ms. */
const AFTER_DRAG = 50;
/** Time of a frame at 60 frames per second, ms. */
const FRAME = 16;
/** How long the second click of two may take, ms. */
const DOUBLE_CLICK = 220;
const NARROWEST = 120;

export class Viewport {
  private box: Area = { left: 0, top: 0, width: 1, height: 1 };
  private size = { width: 0, height: 0 };
  private frame = 0;
  private painted = -Infinity;
  private dragged = -Infinity;
  private clicked = 0;
  private readonly handles: Handles;
  private readonly sizes: ResizeObserver;
  private readonly stop: (() => void)[];
  private readonly select: HTMLElement;
  private readonly line: HTMLElement;

  /** `over` lies over the canvas and takes mouse, finger and handles; this sets its place. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly over: HTMLElement,
    private readonly link: Link,
    private scene: Scene,
  ) {
    const part = (name: string) => {
      const element = document.createElement("div");
      element.className = name;
      element.hidden = true;
      return over.appendChild(element);
    };
    [this.select, this.line] = [part("plot-select"), part("plot-cursor")];
    this.handles = new Handles(over, (clientX) => this.at(clientX));
    this.listen();
    this.sizes = new ResizeObserver(() => this.schedule());
    this.sizes.observe(canvas.parentElement as HTMLElement);
    this.stop = [effect(() => (void link.range.value, void theme.value, this.schedule())), effect(() => this.point(link.cursor.value))];
  }

  /** Shows another scene in the same place. What comes first is drawn at once; what follows within a frame waits for the next one. */
  update(scene: Scene): void {
    this.scene = scene;
    if (performance.now() - this.painted > FRAME) this.paint();
    else this.schedule();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.clicked);
    this.sizes.disconnect();
    this.stop.forEach((each) => each());
    this.over.replaceChildren();
  }

  /** The stretch of x that is shown. */
  shown(): Range {
    return this.link.range.peek() ?? this.scene.whole;
  }

  /** The length of x that so many pixels have, about. */
  per(pixels: number): number {
    const [from, to] = this.shown();
    return ((to - from) / Math.max(100, this.box.width)) * pixels;
  }

  /** What a key does; true where it did something. */
  key({ key, shiftKey }: KeyboardEvent): boolean {
    const at = this.link.cursor.peek();
    const direction = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : null;
    if (direction && shiftKey) return this.zoom(1, NaN, direction * LEAP);
    if (direction) return this.move(this.scene.step(at, direction, this.view()));
    if (key === "Home") return this.move(this.shown()[0]);
    if (key === "End") return this.move(this.shown()[1]);
    if (key === "+" || key === "=") return this.zoom(1 / ZOOM ** 2, at ?? NaN);
    if (key === "-") return this.zoom(ZOOM ** 2, at ?? NaN);
    if (key === "0") return this.reset();
    if (key === "Enter" && at !== null) this.scene.pick(at);
    if (key === "Escape") this.link.cursor.value = null;
    return key === "Escape" || (key === "Enter" && at !== null);
  }

  /** Puts the cursor at a place, and what is shown around it where it would not be seen. */
  move(to: number | null): true {
    const [first, last] = this.scene.whole;
    const at = to === null ? null : Math.min(last, Math.max(first, to));
    const [from, until] = this.shown();
    if (at !== null && (at < from || at > until)) this.zoom(1, NaN, (at - (from + until) / 2) / (until - from));
    this.link.cursor.value = at;
    if (at !== null) this.scene.aloud(at);
    return true;
  }

  /** Shows everything again. */
  reset(): true {
    this.link.range.value = null;
    return true;
  }

  private zoom(factor: number, around: number, shift = 0): true {
    const { x, whole } = this.scene;
    const next = zoomed(x, this.shown(), whole, factor, around, shift);
    this.link.range.value = next[0] <= whole[0] && next[1] >= whole[1] ? null : next;
    return true;
  }

  /** From x to pixels of the canvas. */
  private view(): View {
    const straight = transform(this.scene.x);
    return new View(this.box, this.shown(), [0, 1], straight, straight);
  }

  /** The value at a place of the window. */
  private at(clientX: number): number {
    const inside = clientX - this.over.getBoundingClientRect().left;
    return this.view().xAt(this.box.left + Math.min(this.box.width, Math.max(0, inside)));
  }

  /** Draws in the next frame, once for whatever changed until then. */
  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  /** Draws now. */
  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.painted = performance.now();
    const width = Math.max(NARROWEST, this.canvas.parentElement?.clientWidth ?? 0);
    const { box, height } = this.scene.arrange(width);
    [this.box, this.size] = [box, { width, height }];
    Object.assign(this.over.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
    const pen = canvasPen(this.canvas, this.size.width, this.size.height);
    if (pen) this.scene.draw(pen, this.shown(), theme.peek());
    this.handles.place(this.scene.x, this.scene.marks, this.view());
    this.point(this.link.cursor.peek());
  }

  /** Puts the cursor's line where it belongs; nothing is drawn for that. */
  private point(at: number | null): void {
    const pixel = at === null ? NaN : this.view().x(at) - this.box.left;
    this.line.hidden = !(pixel >= -0.5 && pixel <= this.box.width + 0.5);
    if (!this.line.hidden) this.line.style.transform = `translateX(${pixel}px)`;
  }

  private listen(): void {
    const { over } = this;
    over.addEventListener("pointermove", (event) => {
      if (event.target === over && !event.buttons) this.link.cursor.value = this.at(event.clientX);
    });
    over.addEventListener("pointerleave", () => (this.link.cursor.value = null));
    over.addEventListener("dblclick", (event) => event.target === over && this.reset());
    over.addEventListener("click", (event) => this.click(event));
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    over.addEventListener("pointerdown", (event) => this.grab(event));
  }

  /** Of a plot that is zoomed, a click may be the first of two, which show everything again. */
  private click(event: MouseEvent): void {
    if (event.target !== this.over || performance.now() - this.dragged < AFTER_DRAG) return;
    const at = this.at(event.clientX);
    clearTimeout(this.clicked);
    if (!this.link.range.peek()) this.scene.pick(at);
    else if (event.detail === 1) this.clicked = window.setTimeout(() => this.scene.pick(at), DOUBLE_CLICK);
  }

  /** The wheel zooms a plot that has the focus, or with Ctrl held; otherwise the page scrolls. */
  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && !this.over.parentElement?.contains(document.activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.zoom(1, NaN, event.deltaX / this.box.width);
    else this.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, this.at(event.clientX));
  }

  /** The mouse chooses a stretch; with Shift, with the middle button, or a finger it moves what is shown. */
  private grab(down: PointerEvent): void {
    const { over } = this;
    const isMouse = down.pointerType === "mouse";
    if (down.target !== over || (isMouse && down.button > 1)) return;
    clearTimeout(this.clicked); // the second click of two begins
    const pans = !isMouse || down.shiftKey || down.button === 1;
    if (isMouse) down.preventDefault();
    over.parentElement?.focus({ preventScroll: true });
    let last = down.clientX;
    dragged(over, down, (event, isOver) => {
      if (Math.abs(event.clientX - down.clientX) >= DRAG) this.dragged = performance.now();
      if (pans) this.zoom(1, NaN, (last - event.clientX) / this.box.width);
      else this.choose(down.clientX, event.clientX, isOver && event.type !== "pointercancel");
      this.select.hidden ||= isOver;
      last = event.clientX;
    });
  }

  private choose(begin: number, now: number, isOver: boolean): void {
    const [from, to] = begin < now ? [begin, now] : [now, begin];
    this.select.hidden = to - from < DRAG;
    Object.assign(this.select.style, { transform: `translateX(${from - this.over.getBoundingClientRect().left}px)`, width: `${to - from}px` });
    if (isOver && !this.select.hidden) this.link.range.value = zoomed(this.scene.x, [this.at(from), this.at(to)], this.scene.whole, 1, NaN);
  }
}
