/** Events of the runs as text: near the cursor, as rows of a table, and from one to the next. */
import { lowerBound } from "../charts/lines";
import { format } from "../charts/units";
import type { Drawn } from "./panels";

/** A row of the table of events. */
export type Row = [time: number, line: string, event: string, count: number, window: number];

/** What happened within so many seconds of a time, summed by kind: `cubic: fast recovery, 3 × loss`. */
export function eventText(lines: readonly Drawn[], at: number, within: number): string {
  const said = lines.flatMap((line) => {
    const { t, kind, flow, count } = line.run.marks;
    if (!t || !kind || !flow || !count) return [];
    const sums = new Map<number, number>();
    for (let i = lowerBound(t, at - within); i < t.length && (t[i] as number) <= at + within; i += 1) {
      if (flow[i] === line.flow.flow) sums.set(kind[i] as number, (sums.get(kind[i] as number) ?? 0) + (count[i] as number));
    }
    const words = [...sums]
      .sort(([one], [other]) => one - other)
      .map(([place, n]) => `${n > 1 ? `${n} × ` : ""}${line.run.kinds[place]?.title ?? ""}`);
    return words.length ? [`${line.label}: ${words.join(", ")}`] : [];
  });
  return said.join("; ");
}

/** The time of the next event of any line in a direction; null where there is none. */
export function neighbour(lines: readonly Drawn[], from: number, direction: 1 | -1): number | null {
  const runs = new Set(lines.map((line) => line.run));
  const gap = 1e-6 + Math.abs(from) * 1e-6;
  const found = [...runs].flatMap(({ marks: { t } }) => {
    if (!t) return [];
    const place = direction > 0 ? lowerBound(t, from + gap) : lowerBound(t, from - gap) - 1;
    return t[place] ?? [];
  });
  return found.length ? (direction > 0 ? Math.min(...found) : Math.max(...found)) : null;
}

/** A row for each event, in order of time. */
export function eventRows(lines: readonly Drawn[]): Row[] {
  const rows = lines.flatMap(({ run, flow: own, label }) => {
    const { t, kind, flow, count, cwnd } = run.marks;
    if (!t || !kind || !flow || !count || !cwnd) return [];
    return Array.from(t, (at, i): Row | null =>
      flow[i] === own.flow ? [at, label, run.kinds[kind[i] as number]?.title ?? "", count[i] as number, cwnd[i] as number] : null,
    ).filter((row) => row !== null);
  });
  return rows.sort((one, other) => one[0] - other[0]);
}

/** A row's time as it is shown. */
export function timeOf(row: Row): string {
  return format(row[0], "time", 6);
}
