/** The buttons that save what a chart shows. */
import "./plot.css";
import type { Chart, Range } from "./description";
import { FIGURE, type Figure, figure, rowsOf, saveCsv, savePng, saveSvg } from "./save";
import { theme } from "./theme";

export interface ExportsProps {
  /** Name of the files without their ends. */
  name: string;
  title: string;
  draw: Figure;
  size?: { width: number; height: number };
  table: () => { columns: readonly string[]; rows: readonly (readonly (string | number)[])[] };
}

/** PNG, SVG and CSV of any figure. */
export function Exports({ name, title, draw, size = FIGURE, table }: ExportsProps) {
  const csv = () => {
    const { columns, rows } = table();
    saveCsv(name, columns, rows);
  };
  return (
    <span class="exports" role="group" aria-label={`Save ${title}`}>
      <button type="button" class="button quiet" onClick={() => savePng(name, draw, theme.peek(), size)}>
        PNG
      </button>
      <button type="button" class="button quiet" onClick={() => saveSvg(name, title, draw, theme.peek(), size)}>
        SVG
      </button>
      <button type="button" class="button quiet" onClick={csv}>
        CSV
      </button>
    </span>
  );
}

/** PNG, SVG and CSV of a chart; `all` is the chart for the CSV where what is drawn leaves something out. */
export function ChartExports({ name, chart, shown = null, all = chart }: { name: string; chart: Chart; shown?: Range | null; all?: Chart }) {
  return <Exports name={name} title={chart.title} draw={figure(chart, shown)} table={() => rowsOf(all)} />;
}
