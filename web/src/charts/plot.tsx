/** The plot of a chart, with legend, cursor, zoom and keys. */
import "uplot/dist/uPlot.min.css";
import "./plot.css";
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Chart } from "./description";
import { Legend } from "./legend";
import { fresh, type Link } from "./links";
import { Plotter } from "./plotter";
import { type Reading, sentence } from "./reading";
import { format } from "./units";

export interface PlotProps {
  chart: Chart;
  /** Pixels; 320 if it is not given. */
  height?: number;
  /** Plots with the same link show the same stretch of x and the same cursor. */
  link?: Link;
  /** A click, or Enter at the cursor. */
  onPick?: (x: number) => void;
  /** False where another plot's legend is enough. */
  legend?: boolean;
}

const KEYS =
  "Arrow keys left and right move the cursor, up and down choose the line, plus and minus zoom, 0 shows everything, Enter chooses the place.";

/** Draws a chart and keeps it at the width of its place. */
export function Plot({ chart, height = 320, link, onPick, legend = true }: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const plotter = useRef<Plotter | null>(null);
  const own = useMemo(() => link ?? fresh(), [link]);
  const reading = useSignal<Reading | null>(null);
  const aloud = useSignal("");
  const zoomed = useSignal(false);
  const latest = useRef({ chart, onPick });
  latest.current = { chart, onPick };
  const kind = `${chart.x.scale ?? ""} ${chart.y.scale ?? ""}`;

  useSignalEffect(() => {
    zoomed.value = own.range.value !== null;
  });
  useEffect(() => {
    const ears = {
      read: (now: Reading | null, loud: boolean) => {
        reading.value = now;
        if (loud && now) aloud.value = sentence(latest.current.chart, now);
      },
      pick: (x: number) => latest.current.onPick?.(x),
    };
    const made = new Plotter(host.current as HTMLElement, latest.current.chart, height, own, ears);
    plotter.current = made;
    return () => {
      plotter.current = null;
      made.destroy();
    };
  }, [own, kind]);
  useLayoutEffect(() => plotter.current?.update(chart, height), [chart, height]);

  return (
    <div class="plot">
      <div
        ref={host} class="plot-host" role="application" aria-roledescription="chart" aria-label={`${chart.title}. ${KEYS}`} tabIndex={0}
        onKeyDown={(event) => {
          if (event.altKey || event.ctrlKey || event.metaKey) return;
          if (event.target === host.current && plotter.current?.key(event)) event.preventDefault();
        }}
      />
      {zoomed.value && (
        <button type="button" class="button plot-reset" onClick={() => plotter.current?.reset()}>
          Show all
        </button>
      )}
      {legend && <Legend series={chart.series} reading={reading.value} place={placeOf(chart, reading.value)} />}
      <p class="aloud" aria-live="polite">{aloud.value}</p>
    </div>
  );
}

/** Where the cursor is, as text. */
function placeOf(chart: Chart, reading: Reading | null): string {
  return reading ? `at ${chart.x.title} ${format(reading.values[0]?.x ?? reading.at, chart.x.quantity)}` : "Point at the plot for values.";
}
