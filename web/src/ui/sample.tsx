/**
 * How a congestion control is drawn everywhere: a short line in its colour and dash, with its marker.
 *
 *     <Sample control={look("cubic")} />
 */
import type { Control } from "../server/contract";

const DASHES = ["", "5 2", "1.5 2", "5 1.5 1 1.5"];

/** The outline of each marker, around (0, 0) with a radius of about 4. */
const MARKERS: Record<string, string> = {
  o: "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
  s: "M-3.2 -3.2h6.4v6.4h-6.4z",
  "^": "M0 -4l4 7h-8z",
  v: "M0 4l4 -7h-8z",
  "<": "M-4 0l7 -4v8z",
  ">": "M4 0l-7 -4v8z",
  D: "M0 -4.4l4.4 4.4l-4.4 4.4l-4.4 -4.4z",
  d: "M0 -4.4l3 4.4l-3 4.4l-3 -4.4z",
  P: "M-1.4 -4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z",
  X: "M-4 -2.2l1.8 -1.8l2.2 2.2l2.2 -2.2l1.8 1.8l-2.2 2.2l2.2 2.2l-1.8 1.8l-2.2 -2.2l-2.2 2.2l-1.8 -1.8l2.2 -2.2z",
  "*": "M0 -4.6l1.2 3.2h3.3l-2.6 2.1l1 3.4l-2.9 -2l-2.9 2l1 -3.4l-2.6 -2.1h3.3z",
  h: "M0 -4l3.5 2v4l-3.5 2l-3.5 -2v-4z",
};

/** The dash of a control as numbers for a canvas, in pixels; empty is solid. */
export function dashes(dash: number): number[] {
  return (DASHES[dash] ?? "").split(" ").filter(Boolean).map(Number);
}

/** The outline of a marker as the path of an SVG around (0, 0), which a canvas takes as `new Path2D(marker("o"))`. */
export function marker(name: string): string {
  return MARKERS[name] ?? (MARKERS.o as string);
}

export function Sample({ control }: { control: Pick<Control, "colour" | "dash" | "marker"> }) {
  return (
    <svg class="sample" viewBox="-13 -6 26 12" width="26" height="12" aria-hidden="true" focusable="false">
      <path d="M-12 0H12" stroke={control.colour} stroke-width="2" stroke-dasharray={DASHES[control.dash] || undefined} fill="none" />
      <path d={marker(control.marker)} fill={control.colour} />
    </svg>
  );
}
