/** What the lines and symbols mean, with the numbers of each run; the table of events. */
import { Sample } from "../charts/legend";
import { outline } from "../charts/pen";
import { format, plain } from "../charts/units";
import { counts } from "./data";
import { eventRows, timeOf } from "./events";
import { type Drawn, SHAPES } from "./panels";

/** The runs with their goodput, and the symbols with how often each event happened. */
export function Legend({ lines }: { lines: readonly Drawn[] }) {
  const runs = [...new Set(lines.map((each) => each.run))];
  const kinds = runs[0]?.kinds ?? [];
  const sums = runs.map(counts);
  const names = runs.map((run) => lines.filter((each) => each.run === run).map((each) => each.label).join(" + "));
  return (
    <div class="inside-legend">
      <ul>
        {lines.map(({ run, flow, label, look }) => (
          <li key={label}>
            <Sample series={{ look, width: 1.75 }} />
            <span>{label}</span>
            <span class="value">{format((run.numbers[flow.flow]?.goodput_mbps ?? NaN) * 1e6, "rate")}</span>
          </li>
        ))}
      </ul>
      <ul>
        {kinds.flatMap(({ name, title, about }, i) =>
          sums.some((each) => each[i])
            ? [
                <li key={name} title={about}>
                  <Symbol shape={SHAPES[name] ?? "o"} />
                  <span>{title}</span>
                  <span class="value">{sums.map((each, run) => `${runs.length > 1 ? `${names[run]} ` : ""}${each[i] ?? 0}`).join(", ")}</span>
                </li>,
              ]
            : [],
        )}
      </ul>
    </div>
  );
}

function Symbol({ shape }: { shape: string }) {
  const points = outline(shape).map((each) => 7 + each * 4.5);
  return (
    <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true" class="inside-symbol">
      {points.length ? <polygon points={points.join(" ")} /> : <circle cx="7" cy="7" r="4.5" />}
    </svg>
  );
}

/** Most rows that are shown. */
const MOST = 500;

/** Every event as a row; made when it is opened. */
export function EventTable({ lines }: { lines: readonly Drawn[] }) {
  const runs = [...new Set(lines.map((each) => each.run))];
  return (
    <details class="disclosure data">
      <summary>Table of the events and of the runs</summary>
      <div class="inside">
        <Rows
          caption="Runs" head={["run", "seed", "goodput", "retransmissions", "fast recoveries", "timeouts", "undos"]}
          rows={lines.map(({ run, flow, label }) => {
            const { goodput_mbps, retransmits, fast_recoveries, rtos, undos } = run.numbers[flow.flow] ?? {};
            return [label, String(run.seed), format((goodput_mbps ?? NaN) * 1e6, "rate"), ...[retransmits, fast_recoveries, rtos, undos].map((n) => String(n ?? "–"))];
          })}
        />
        <Rows caption="Events" head={["time", "run", "event", "how many", "window after it, packets"]} rows={eventRows(lines).map((row) => [timeOf(row), row[1], row[2], String(row[3]), plain(row[4])])} />
        {runs.some((run) => run.caveats.length) && <p class="note">{[...new Set(runs.flatMap((run) => run.caveats))].join(" ")}</p>}
      </div>
    </details>
  );
}

function Rows({ caption, head, rows }: { caption: string; head: readonly string[]; rows: readonly (readonly string[])[] }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption>{caption}</caption>
          <thead><tr>{head.map((each) => <th key={each} scope="col">{each}</th>)}</tr></thead>
          <tbody>{rows.slice(0, MOST).map((row, i) => <tr key={i}>{row.map((cell, j) => <td key={j}>{cell}</td>)}</tr>)}</tbody>
        </table>
      </div>
      {rows.length > MOST && <p class="note">The first {MOST} of {rows.length} rows; the CSV file has them all.</p>}
    </>
  );
}
