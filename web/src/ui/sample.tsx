/**
 * A sample of a line, with its marker: of a series of a chart, or of a congestion control.
 *
 *     <Sample look={look("cubic")} />
 */
import type { Series } from "../charts/description";
import { dashOf, LINE_WIDTH, MARKER, outline } from "../charts/pen";

export function Sample({ look, kind, width = LINE_WIDTH }: Pick<Series, "look" | "kind" | "width">) {
  const points = outline(look.marker);
  const ring = points.map((each, i) => (i % 2 ? 7 : 16) + each * MARKER);
  return (
    <svg class="sample" width="32" height="14" viewBox="0 0 32 14" aria-hidden="true" focusable="false">
      {kind !== "points" && <path d="M2 7H30" stroke={look.colour} stroke-width={width} stroke-dasharray={dashOf(look.dash, width).join(" ")} />}
      {points.length ? <polygon points={ring.join(" ")} fill={look.colour} /> : <circle cx="16" cy="7" r={MARKER} fill={look.colour} />}
    </svg>
  );
}
