/** Handles of marks that can be moved: sliders over the plot, for mouse, finger and keys. */
import type { Axis, Mark, Range } from "./description";
import type { View } from "./lines";
import { transform } from "./scales";
import { format } from "./units";

/** Parts of the axis that an arrow key, and one with Shift, moves a mark. */
const STEP = 0.01;
const LEAP = 0.1;
/** Width and height of a handle, pixels. */
const HANDLE = 24;

export class Handles {
  private readonly elements = new Map<string, HTMLElement>();
  private axis: Axis = { title: "x", quantity: "number" };
  private marks: readonly Mark[] = [];
  private shown: Range = [0, 1];
  private held = "";

  /** `valueAt`: the value of x at a place of the window. */
  constructor(
    private readonly over: HTMLElement,
    private readonly valueAt: (clientX: number) => number,
  ) {}

  /** Puts a handle on every mark that can be moved. */
  place(axis: Axis, marks: readonly Mark[], view: View): void {
    [this.axis, this.marks, this.shown] = [axis, marks.filter((mark) => mark.onMove), view.xs];
    for (const [id, element] of this.elements) {
      if (this.mark(id)) continue;
      element.remove();
      if (this.held === id) this.held = "";
      this.elements.delete(id);
    }
    const places = this.marks.map((mark) => view.x(mark.at) - view.area.left);
    const rows = rowsOf(places, HANDLE);
    this.marks.forEach((mark, i) =>
      this.put(this.elements.get(mark.id) ?? this.make(mark.id), mark, places[i] as number, rows[i] as number, view.area.width),
    );
  }

  private put(element: HTMLElement, { at, label }: Mark, pixel: number, row: number, width: number): void {
    element.hidden = !(pixel >= -1 && pixel <= width + 1);
    element.style.transform = `translateX(${Math.round(pixel)}px)`;
    element.style.setProperty("--row", String(row));
    element.setAttribute("aria-label", `${label} on ${this.axis.title}`);
    element.setAttribute("aria-valuemin", String(this.shown[0]));
    element.setAttribute("aria-valuemax", String(this.shown[1]));
    element.setAttribute("aria-valuenow", String(at));
    element.setAttribute("aria-valuetext", format(at, this.axis.quantity));
  }

  private make(id: string): HTMLElement {
    const element = document.createElement("div");
    element.className = "plot-handle";
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.addEventListener("keydown", (event) => this.key(event, id));
    element.addEventListener("dblclick", (event) => event.stopPropagation());
    element.addEventListener("pointerdown", (event) => this.grab(event, element, id));
    this.over.append(element);
    this.elements.set(id, element);
    return element;
  }

  private mark(id: string): Mark | undefined {
    return this.marks.find((mark) => mark.id === id);
  }

  private key(event: KeyboardEvent, id: string): void {
    const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const mark = this.mark(id);
    if (!direction || !mark?.onMove) return;
    event.preventDefault();
    event.stopPropagation();
    const { to, from } = transform(this.axis);
    const [low, high] = [to(this.shown[0]), to(this.shown[1])];
    const place = to(mark.at) + direction * (event.shiftKey ? LEAP : STEP) * (high - low);
    mark.onMove(from(Math.min(high, Math.max(low, place))), true);
  }

  private grab(down: PointerEvent, element: HTMLElement, id: string): void {
    if (down.button || this.held) return;
    down.stopPropagation();
    down.preventDefault();
    element.focus({ preventScroll: true });
    this.held = id;
    dragged(element, down, (event, isOver) => {
      if (isOver) this.held = "";
      if (!isOver || event.clientX !== down.clientX) this.mark(id)?.onMove?.(this.valueAt(event.clientX), isOver);
    });
  }
}

/** Calls `moved` for every movement of the pointer that went down on an element, and once more when it is let go. */
export function dragged(element: HTMLElement, down: PointerEvent, moved: (event: PointerEvent, isOver: boolean) => void): void {
  element.setPointerCapture(down.pointerId);
  const ends = new AbortController();
  const listen = (name: "pointermove" | "pointerup" | "pointercancel", isOver: boolean) =>
    element.addEventListener(
      name,
      (event) => {
        if (event.pointerId !== down.pointerId) return;
        if (isOver) ends.abort();
        moved(event, isOver);
      },
      { signal: ends.signal },
    );
  listen("pointermove", false);
  listen("pointerup", true);
  listen("pointercancel", true);
}

/** A row for each of some places so that in a row none is closer to another than `room`: there each has room for a finger. */
export function rowsOf(places: readonly number[], room: number): number[] {
  const rows = places.map(() => 0);
  const last: number[] = [];
  for (const i of places.map((_, place) => place).sort((one, other) => (places[one] as number) - (places[other] as number))) {
    const free = last.findIndex((at) => (places[i] as number) - at >= room);
    rows[i] = free >= 0 ? free : last.length;
    last[rows[i] as number] = places[i] as number;
  }
  return rows;
}
