/** Curves of kept results as a chart, from the blocks that the question `curve` sends too. */
import type { Chart, Look, Numbers } from "../charts/description";
import type { Quantity } from "../charts/units";
import type { Latest } from "./latest";

/** Metrics of the blocks: what people call them. */
export const METRICS: Record<string, { title: string; quantity: Quantity }> = {
  goodput: { title: "Goodput", quantity: "rate" },
  rtt: { title: "RTT", quantity: "time" },
  delay: { title: "Added RTT (95th percentile)", quantity: "time" },
  retransmissions: { title: "Retransmissions", quantity: "share" },
  cv: { title: "CV of the goodput", quantity: "share" },
};

/** The chart of a metric along the axis; null where there is none. */
export function curve(blocks: Latest, metric: string, labels: readonly string[], look: (place: number) => Look): Chart | null {
  const { axis, points, runs } = blocks;
  const [x, about] = [axis?.columns.x, METRICS[metric]];
  if (!axis || !x || !points || !about) return null;
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
      strip: { x: single.map((row) => x[runs?.columns.place?.[row] as number] as number), y: single.map((row) => runs?.columns[metric]?.[row] ?? NaN) },
    };
  });
  const quantity = axis.values.quantity as Quantity;
  return { title: `${about.title} against ${String(axis.values.title)}`, x: { title: String(axis.values.title), quantity }, y: { title: about.title, quantity: about.quantity, from: 0 }, series };
}

function rowsOf(column: Numbers | undefined, control: number): number[] {
  const rows: number[] = [];
  column?.forEach((value: number, row: number) => value === control && rows.push(row));
  return rows;
}
