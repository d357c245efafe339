/** What panels show as numbers: some rows for a table, all of them for a file. */
import type { Range } from "../charts/description";
import { read } from "../charts/reading";
import { format, inBase } from "../charts/units";
import type { Panel } from "./stacker";

/** Rows of the table of values. */
const ROWS = 100;
/** The quantity of a panel with its base unit. */
function quantityOf({ chart }: Panel): string {
  const { title, quantity } = chart.y;
  return quantity === "number" && title ? `${chart.title} (${title})` : inBase(chart.title, quantity);
}

/** The values at even times of what is shown: a column for each line of each panel. */
export function valueTable(panels: readonly Panel[], [from, to]: Range): { columns: { name: string; text?: boolean }[]; rows: string[][] } {
  const charts = panels.filter(({ rows }) => !rows).map(({ chart, readings }) => ({ ...chart, series: readings ?? chart.series }));
  const columns = [{ name: "time" }, ...charts.flatMap(({ title, series }) => series.map(({ label }) => ({ name: `${title}, ${label}` })))];
  const rows = Array.from({ length: ROWS + 1 }, (_, i) => {
    const at = from + ((to - from) * i) / ROWS;
    const values = charts.flatMap((chart) => chart.series.map((series) => read({ ...chart, series: [series] }, at).values[0]?.text ?? "–"));
    return [format(at, "time", 5), ...values];
  });
  return { columns, rows };
}

/** Every value of every line, in base units. */
export function everyValue(panels: readonly Panel[]): (string | number)[][] {
  return panels
    .filter(({ rows }) => !rows)
    .flatMap((panel) =>
      (panel.readings ?? panel.chart.series).flatMap(({ label, x, y }) =>
        Array.from(x, (at, i) => [short(at), label, quantityOf(panel), short(y[i] ?? NaN)]),
      ),
    );
}

/** A number of 32 bits as short as it is. */
export function short(value: number): number {
  return Number(value.toPrecision(7));
}
