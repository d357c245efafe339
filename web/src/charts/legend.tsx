/** The legend: a piece of each line with its marker, its name, and its value under the cursor. */
import { Sample } from "../ui";
import type { Series } from "./description";
import type { Reading } from "./reading";

/** Every series, with its value under the cursor; `place` says where the cursor is. */
export function Legend({ series, reading, place = "" }: { series: readonly Series[]; reading?: Reading | null; place?: string }) {
  return (
    <ul class="legend">
      {series.map((each) => (
        <li key={each.label}>
          <Sample {...each} />
          <span>{each.label}</span>
          <span class="value">{reading?.values.find((value) => value.label === each.label)?.text ?? ""}</span>
        </li>
      ))}
      {reading !== undefined && <li class="reading">{place}</li>}
    </ul>
  );
}
