/** A chart on the page: uPlot's canvas, scales and cursor with our own lines, and what mouse, finger and keys do to it. */
import { effect } from "@preact/signals";
import uPlot from "uplot";
import type { Chart, Range } from "./description";
import { drawAxes, drawData, viewOf } from "./draw";
import { Handles } from "./handles";
import type { Area, View } from "./lines";
import type { Link } from "./links";
import { CanvasPen } from "./pen";
import { read, type Reading, step } from "./reading";
import { xRange, yRange, zoomed } from "./scales";
import { theme } from "./theme";

/** What the plot tells. */
export interface Ears {
  /** What is under the cursor; `aloud` where a key moved it. */
  read(reading: Reading | null, aloud: boolean): void;
  /** A click or Enter at a value of x. */
  pick(x: number): void;
}

const PADDING: uPlot.Padding = [34, 18, 46, 56];
const ZOOM = 1.25;
/** Pixels of a movement that is a drag and no click. */
const DRAG = 5;
/** A click this soon after a drag is its end, ms. */
const AFTER_DRAG = 50;
/** Time of a frame at 60 frames per second, ms. */
const FRAME = 16;
/** How long the second click of two may take, ms. */
const DOUBLE_CLICK = 220;

export class Plotter {
  private readonly plot: uPlot;
  private readonly handles: Handles;
  private readonly stop: () => void;
  private readonly sizes: ResizeObserver;
  private whole: Range;
  private ys: Range;
  private current = 0;
  private dragged = -Infinity;
  private frame = 0;
  private painted = -Infinity;
  private clicked = 0;

  constructor(private readonly host: HTMLElement, private chart: Chart, private height: number, private readonly link: Link, private readonly ears: Ears) {
    [this.whole, this.ys] = [xRange(chart), yRange(chart)];
    this.plot = new uPlot(this.options(), [[...this.whole]], host);
    this.handles = new Handles(this.plot.over, (pixel) => this.view().xAt(pixel + this.area().left));
    this.listen();
    this.sizes = new ResizeObserver(() => this.schedule());
    this.sizes.observe(host);
    const watch = [
      effect(() => (void link.range.value, void theme.value, this.schedule())),
      effect(() => this.show(link.cursor.value)),
    ];
    this.stop = () => watch.forEach((each) => each());
  }

  /** Shows another chart in the same place. */
  update(chart: Chart, height: number): void {
    [this.chart, this.height, this.whole, this.ys] = [chart, height, xRange(chart), yRange(chart)];
    this.current = Math.min(this.current, Math.max(0, chart.series.length - 1));
    // What comes first is drawn at once; what follows within a frame waits for the next one.
    if (performance.now() - this.painted > FRAME) this.paint();
    else this.schedule();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.clicked);
    this.stop();
    this.sizes.disconnect();
    this.plot.destroy();
  }

  /** What a key does; true where it did something. */
  key(event: KeyboardEvent): boolean {
    const series = this.chart.series[this.current];
    const at = this.link.cursor.peek();
    switch (event.key) {
      case "ArrowRight":
      case "ArrowLeft": {
        const direction = event.key === "ArrowRight" ? 1 : -1;
        if (event.shiftKey) return this.zoom(1, at ?? 0, direction / 8);
        return series !== undefined && this.move(step(series, at, direction, this.shown(), (value) => this.view().x(value)));
      }
      case "ArrowUp":
      case "ArrowDown":
        this.current = (this.current + (event.key === "ArrowDown" ? 1 : -1) + this.chart.series.length) % Math.max(1, this.chart.series.length);
        return at === null || this.move(at);
      case "Home":
        return this.move(this.shown()[0]);
      case "End":
        return this.move(this.shown()[1]);
      case "+":
      case "=":
        return this.zoom(1 / ZOOM ** 2, at ?? NaN);
      case "-":
        return this.zoom(ZOOM ** 2, at ?? NaN);
      case "0":
        return this.reset();
      case "Enter":
        if (at !== null) this.ears.pick(at);
        return at !== null;
      case "Escape":
        this.link.cursor.value = null;
        return true;
      default:
        return false;
    }
  }

  /** Shows everything again. */
  reset(): true {
    this.link.range.value = null;
    return true;
  }

  /** The stretch of x that is shown. */
  shown(): Range {
    return this.link.range.peek() ?? this.whole;
  }

  private zoom(factor: number, around: number, shift = 0): true {
    const next = zoomed(this.chart.x, this.shown(), this.whole, factor, around, shift);
    const all = next[0] <= this.whole[0] && next[1] >= this.whole[1];
    this.link.range.value = all ? null : next;
    return true;
  }

  private move(to: number | null): true {
    this.link.cursor.value = to;
    if (to !== null) this.ears.read(read(this.chart, to), true);
    return true;
  }

  private options(): uPlot.Options {
    return {
      width: Math.max(50, this.host.clientWidth), height: this.height, padding: PADDING, legend: { show: false }, series: [{}],
      axes: [{ show: false }, { show: false }],
      scales: { x: { time: false, range: () => [...this.shown()] }, y: { range: () => [...this.ys] } },
      cursor: {
        y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: DRAG },
        bind: {
          mousedown: (_, __, handler) => (event) => (event.shiftKey || event.button ? null : handler(event)),
          dblclick: () => () => (this.reset(), null),
        },
      },
      hooks: { draw: [() => this.draw()], setCursor: [(plot) => this.pointed(plot)], setSelect: [(plot) => this.selected(plot)] },
    };
  }

  private area(): Area {
    const ratio = uPlot.pxRatio;
    const { left, top, width, height } = this.plot.bbox;
    return { left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio };
  }

  private view(): View {
    return viewOf(this.chart, this.area(), this.shown(), this.ys);
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
    const { clientWidth } = this.host;
    if (clientWidth && (clientWidth !== this.plot.width || this.height !== this.plot.height)) {
      this.plot.setSize({ width: clientWidth, height: this.height });
    }
    this.plot.redraw(false);
    this.handles.place(this.chart, this.view());
    this.show(this.link.cursor.peek());
  }

  private draw(): void {
    if (!this.plot) return;
    const { ctx } = this.plot;
    const [pen, view, now] = [new CanvasPen(ctx), this.view(), theme.peek()];
    ctx.save();
    ctx.scale(uPlot.pxRatio, uPlot.pxRatio);
    drawAxes(pen, this.chart, view, now);
    drawData(pen, this.chart, view, now);
    ctx.restore();
  }

  /** Puts the cursor's line where the link says. */
  private show(at: number | null): void {
    const area = this.area();
    const pixel = at === null ? NaN : this.view().x(at) - area.left;
    const left = pixel >= -0.5 && pixel <= area.width + 0.5 ? pixel : -10;
    this.plot.setCursor({ left, top: left < 0 ? -10 : area.height / 2 }, false);
    this.ears.read(at === null ? null : read(this.chart, at), false);
  }

  /** The mouse moved. */
  private pointed(plot: uPlot): void {
    if (!this.handles) return;
    const { left = -10, event } = plot.cursor;
    if (event) this.link.cursor.value = left < 0 ? null : this.view().xAt(left + this.area().left);
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < DRAG) return;
    this.dragged = performance.now();
    const [view, begin] = [this.view(), this.area().left + left];
    this.link.range.value = zoomed(this.chart.x, [view.xAt(begin), view.xAt(begin + width)], this.whole, 1, NaN);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  private listen(): void {
    const { over } = this.plot;
    over.addEventListener("click", (event) => {
      if (performance.now() - this.dragged < AFTER_DRAG || event.target !== over) return;
      const at = this.view().xAt(event.offsetX + this.area().left);
      // Of a plot that is zoomed, a click may be the first of two, which show everything again.
      clearTimeout(this.clicked);
      if (!this.link.range.peek()) this.ears.pick(at);
      else if (event.detail === 1) this.clicked = window.setTimeout(() => this.ears.pick(at), DOUBLE_CLICK);
    });
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    over.addEventListener("pointerdown", (event) => this.grab(event));
  }

  /** The wheel zooms a plot that has the focus, or with Ctrl held; otherwise the page scrolls. */
  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && !this.host.contains(document.activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.zoom(1, NaN, event.deltaX / this.area().width);
    else this.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, this.view().xAt(event.offsetX + this.area().left));
  }

  /** A finger, the middle button, or Shift with the mouse moves what is shown. */
  private grab(down: PointerEvent): void {
    if (down.target !== this.plot.over || (down.pointerType === "mouse" && !down.shiftKey && down.button !== 1)) return;
    if (down.pointerType === "mouse") down.preventDefault();
    const { over } = this.plot;
    let last = down.clientX;
    const move = (event: PointerEvent) => {
      if (event.pointerId !== down.pointerId) return;
      this.zoom(1, NaN, (last - event.clientX) / this.area().width);
      if (Math.abs(event.clientX - down.clientX) > DRAG) this.dragged = performance.now();
      last = event.clientX;
    };
    const end = () => {
      over.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"] as const) over.removeEventListener(name, end);
    };
    over.setPointerCapture(down.pointerId);
    over.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"] as const) over.addEventListener(name, end);
  }
}
