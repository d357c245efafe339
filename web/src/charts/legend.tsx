/** The legend: a piece of each line with its marker, its name, and its value under the cursor. */
import type { Series } from "./description";
import { LINE_WIDTH, MARKER } from "./draw";
import { dashOf, outline } from "./pen";
import type { Reading } from "./reading";

/** A sample of a series' line. */
export function Sample({ series }: { series: Pick<Series, "look" | "kind" | "width"> }) {
  const { look, kind, width = LINE_WIDTH } = series;
  const points = outline(look.marker);
  const ring = points.map((each, i) => (i % 2 ? 7 : 16) + each * MARKER);
  return (
    <svg width="32" height="14" viewBox="0 0 32 14" aria-hidden="true">
      {kind !== "points" && <path d="M2 7H30" stroke={look.colour} stroke-width={width} stroke-dasharray={dashOf(look.dash, width).join(" ")} />}
      {points.length ? <polygon points={ring.join(" ")} fill={look.colour} /> : <circle cx="16" cy="7" r={MARKER} fill={look.colour} />}
    </svg>
  );
}

/** Every series, with its value under the cursor; `place` says where the cursor is. */
export function Legend({ series, reading, place = "" }: { series: readonly Series[]; reading?: Reading | null; place?: string }) {
  return (
    <ul class="legend">
      {series.map((each) => (
        <li key={each.label}>
          <Sample series={each} />
          <span>{each.label}</span>
          <span class="value">{reading?.values.find((value) => value.label === each.label)?.text ?? ""}</span>
        </li>
      ))}
      {reading !== undefined && <li class="reading">{place}</li>}
    </ul>
  );
}
