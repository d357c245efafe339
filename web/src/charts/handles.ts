/** Handles of marks that can be moved: sliders over the plot, for mouse, finger and keys. */
import type { Chart, Mark } from "./description";
import type { View } from "./lines";
import { transform } from "./scales";
import { format } from "./units";

/** Parts of the axis that an arrow key, and one with Shift, moves a mark. */
const STEP = 0.01;
const LEAP = 0.1;

export class Handles {
  private readonly elements = new Map<string, HTMLElement>();
  private chart: Chart | null = null;
  private view: View | null = null;
  private held = "";

  /** `valueAt`: the value of x at a pixel of `over`. */
  constructor(private readonly over: HTMLElement, private readonly valueAt: (pixel: number) => number) {}

  /** Puts a handle on every mark that can be moved. */
  place(chart: Chart, view: View): void {
    [this.chart, this.view] = [chart, view];
    const marks = (chart.marks ?? []).filter((mark) => mark.onMove);
    for (const [id, element] of this.elements) {
      if (marks.some((mark) => mark.id === id)) continue;
      element.remove();
      if (this.held === id) this.held = "";
      this.elements.delete(id);
    }
    for (const mark of marks) this.put(this.elements.get(mark.id) ?? this.make(mark.id), mark, view);
  }

  private put(element: HTMLElement, mark: Mark, view: View): void {
    const pixel = view.x(mark.at) - view.area.left;
    element.hidden = !(pixel >= -1 && pixel <= view.area.width + 1);
    element.style.transform = `translateX(${Math.round(pixel)}px)`;
    element.setAttribute("aria-label", `${mark.label} on ${this.chart?.x.title ?? "x"}`);
    element.setAttribute("aria-valuemin", String(view.xs[0]));
    element.setAttribute("aria-valuemax", String(view.xs[1]));
    element.setAttribute("aria-valuenow", String(mark.at));
    element.setAttribute("aria-valuetext", format(mark.at, this.chart?.x.quantity ?? "number"));
  }

  private make(id: string): HTMLElement {
    const element = document.createElement("div");
    element.className = "plot-handle";
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.addEventListener("keydown", (event) => this.key(event, id));
    element.addEventListener("mousedown", (event) => event.stopPropagation());
    element.addEventListener("dblclick", (event) => event.stopPropagation());
    element.addEventListener("pointerdown", (event) => this.grab(event, element, id));
    this.over.append(element);
    this.elements.set(id, element);
    return element;
  }

  private mark(id: string): Mark | undefined {
    return this.chart?.marks?.find((mark) => mark.id === id);
  }

  private key(event: KeyboardEvent, id: string): void {
    const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const mark = this.mark(id);
    if (!direction || !mark?.onMove || !this.chart || !this.view) return;
    event.preventDefault();
    event.stopPropagation();
    const { to, from } = transform(this.chart.x);
    const [low, high] = [to(this.view.xs[0]), to(this.view.xs[1])];
    const place = to(mark.at) + direction * (event.shiftKey ? LEAP : STEP) * (high - low);
    mark.onMove(from(Math.min(high, Math.max(low, place))), true);
  }

  private grab(down: PointerEvent, element: HTMLElement, id: string): void {
    if (down.button || this.held) return;
    down.stopPropagation();
    down.preventDefault();
    element.focus({ preventScroll: true });
    element.setPointerCapture(down.pointerId);
    this.held = id;
    const at = (event: PointerEvent) => {
      const box = this.over.getBoundingClientRect();
      return this.valueAt(Math.min(box.width, Math.max(0, event.clientX - box.left)));
    };
    const move = (event: PointerEvent) => this.mark(id)?.onMove?.(at(event), false);
    const end = (event: PointerEvent) => {
      element.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"] as const) element.removeEventListener(name, end);
      this.held = "";
      if (event.clientX !== down.clientX) this.mark(id)?.onMove?.(at(event), true);
    };
    element.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"] as const) element.addEventListener(name, end);
  }
}
