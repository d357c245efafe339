/** Curves of kept results as a chart, from the blocks that the question `curve` sends too. */
import type { Chart, Look, Numbers } from "../charts/description";
import type { Quantity } from "../charts/units";
import { METRICS, type Metric } from "../curves/gather";
import type { Latest } from "./latest";

/** The metric of this name; the first one where there is none. */
export function metricOf(name: string): Metric {
  return METRICS.find((each) => each.name === name) ?? (METRICS[0] as Metric);
}

/** The chart of a metric along the axis; null where there is none. */
export function curve(blocks: Latest, about: Metric, labels: readonly string[], look: (place: number) => Look): Chart | null {
  const { axis, points, runs } = blocks;
  const x = axis?.columns.x;
  if (!axis || !x || !points) return null;
  const metric = about.name;
  const series = labels.map((label, control) => {
    const rows = rowsOf(points.columns.control, control);
    const of = (name: string) => rows.map((row) => points.columns[name]?.[row] ?? NaN);
    const order = rows.map((_, i) => i).sort((a, b) => (x[of("place")[a] as number] as number) - (x[of("place")[b] as number] as number));
    const sorted = (values: number[]) => order.map((i) => values[i] as number);
    const single = rowsOf(runs?.columns.control, control);
    return {
      label,
      look: look(control),
      x: sorted(of("place").map((place) => x[place] as number)),
      y: sorted(of(metric)),
      low: sorted(of(`${metric}.low`)),
      high: sorted(of(`${metric}.high`)),
      n: sorted(of("n")),
      markers: true,
      strip: {
        x: single.map((row) => x[runs?.columns.place?.[row] as number] as number),
        y: single.map((row) => runs?.columns[metric]?.[row] ?? NaN),
      },
    };
  });
  const quantity = axis.values.quantity as Quantity;
  return {
    title: `${about.title} against ${String(axis.values.title)}`,
    x: { title: String(axis.values.title), quantity },
    y: { title: about.title, quantity: about.quantity, from: 0 },
    series,
  };
}

function rowsOf(column: Numbers | undefined, control: number): number[] {
  const rows: number[] = [];
  column?.forEach((value: number, row: number) => value === control && rows.push(row));
  return rows;
}
