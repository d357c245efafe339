/** What the lines and symbols mean, with the numbers of each run; the table of events. */
import { outline } from "../charts/pen";
import type { Range } from "../charts/description";
import { format } from "../charts/units";
import { Disclosure, Sample, Table } from "../ui";
import { counts } from "./data";
import { eventRows, timeOf } from "./events";
import { type Drawn, SHAPES } from "./panels";
import type { Panel } from "./stacker";
import { valueTable } from "./values";

/** The runs with their goodput, and the symbols with how often each event happened. */
export function Legend({ lines }: { lines: readonly Drawn[] }) {
  const runs = [...new Set(lines.map((each) => each.run))];
  const kinds = runs[0]?.kinds ?? [];
  const sums = runs.map(counts);
  const names = runs.map((run) =>
    lines
      .filter((each) => each.run === run)
      .map((each) => each.label)
      .join(" + "),
  );
  return (
    <div class="inside-legend">
      <ul>
        {lines.map(({ run, flow, label, look }) => (
          <li key={label}>
            <Sample look={look} width={1.75} />
            <span>{label}</span>
            <span class="value">{format((run.numbers[flow.flow]?.goodput_mbps ?? NaN) * 1e6, "rate")}</span>
          </li>
        ))}
      </ul>
      {runs.some((run) => run.numbers.length > run.flows.length) && (
        <p class="note">The first {runs[0]?.flows.length} flows are shown; the events are those of all.</p>
      )}
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

/** What stands behind the panels: the runs, their events, and the values of what is shown. Made when it is opened. */
export function Tables({ lines, panels, shown }: { lines: readonly Drawn[]; panels: readonly Panel[]; shown: () => Range }) {
  const caveats = [...new Set(lines.flatMap(({ run }) => run.caveats))];
  return (
    <Disclosure title="Tables: runs, events, values over time">
      {() => {
        const values = valueTable(panels, shown());
        return (
          <div class="inside-tables">
            <Table caption="Runs" columns={RUN_COLUMNS} rows={() => lines.map(runRow)} />
            <Table
              caption="Events"
              columns={EVENT_COLUMNS}
              rows={() => eventRows(lines).map((row) => [timeOf(row), row[1], row[2], row[3], row[4]])}
            />
            <Table caption="Values over the shown time" columns={values.columns} rows={() => values.rows} />
            {caveats.map((each) => (
              <p class="note" key={each}>
                Note: {each}.
              </p>
            ))}
          </div>
        );
      }}
    </Disclosure>
  );
}

const RUN_COLUMNS = [
  { name: "run", text: true },
  ...["seed", "goodput", "retransmissions", "fast recoveries", "timeouts", "undos"].map((name) => ({ name })),
];
const EVENT_COLUMNS = [
  { name: "time" },
  { name: "run", text: true },
  { name: "event", text: true },
  { name: "how many" },
  { name: "window after it", unit: "packets" },
];

function runRow({ run, flow, label }: Drawn) {
  const { goodput_mbps, retransmits, fast_recoveries, rtos, undos } = run.numbers[flow.flow] ?? {};
  return [label, String(run.seed), format((goodput_mbps ?? NaN) * 1e6, "rate"), retransmits, fast_recoveries, rtos, undos];
}
