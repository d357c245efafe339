/** The plot of a chart, with legend, cursor, zoom and keys. */
import "./plot.css";
import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Chart } from "./description";
import { drawAxes, drawData, MARGIN, viewOf } from "./draw";
import { Legend } from "./legend";
import { fresh, type Link } from "./links";
import { read, type Reading, sentence, step } from "./reading";
import { xRange, yRange } from "./scales";
import { format } from "./units";
import { type Scene, Viewport } from "./viewport";

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
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLDivElement>(null);
  const viewport = useRef<Viewport | null>(null);
  /** The line along which arrow keys move the cursor. */
  const current = useRef(0);
  const latest = useRef(onPick);
  latest.current = onPick;
  const own = useMemo(() => link ?? fresh(), [link]);
  const aloud = useSignal("");
  const zoomed = useComputed(() => own.range.value !== null);

  const scene = (): Scene => {
    const ys = yRange(chart);
    let box = boxOf(0, height);
    return {
      x: chart.x,
      whole: xRange(chart),
      marks: chart.marks ?? [],
      arrange: (width) => ({ box: (box = boxOf(width, height)), height }),
      draw(pen, shown, now) {
        const view = viewOf(chart, box, shown, ys);
        drawAxes(pen, chart, view, now);
        drawData(pen, chart, view, now);
      },
      step(from, direction, view) {
        const series = chart.series[Math.min(current.current, chart.series.length - 1)];
        return series ? step(series, from, direction, view.xs, (value) => view.x(value)) : from;
      },
      aloud: (at) => (aloud.value = sentence(chart, read(chart, at))),
      pick: (at) => latest.current?.(at),
    };
  };
  useLayoutEffect(() => {
    const made = new Viewport(canvas.current as HTMLCanvasElement, over.current as HTMLElement, own, scene());
    viewport.current = made;
    return () => made.destroy();
  }, [own]);
  useLayoutEffect(() => viewport.current?.update(scene()), [chart, height]);

  const key = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== host.current) return;
    const at = own.cursor.peek();
    const other = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (other) current.current = (current.current + other + chart.series.length) % Math.max(1, chart.series.length);
    if (other ? at === null || viewport.current?.move(at) : viewport.current?.key(event)) event.preventDefault();
  };
  const at = own.cursor.value;
  const reading = at === null ? null : read(chart, at);
  return (
    <div class="plot">
      <div
        ref={host}
        class="plot-host"
        role="application"
        aria-roledescription="chart"
        aria-label={`${chart.title}. ${KEYS}`}
        tabIndex={0}
        onKeyDown={key}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div ref={over} class="plot-over" />
      </div>
      {zoomed.value && (
        <button type="button" class="button plot-reset" onClick={() => viewport.current?.reset()}>
          Show all
        </button>
      )}
      {legend && <Legend series={chart.series} reading={reading} place={placeOf(chart, reading)} />}
      <p class="aloud" aria-live="polite">
        {aloud.value}
      </p>
    </div>
  );
}

function boxOf(width: number, height: number) {
  return { left: MARGIN.left, top: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
}

/** Where the cursor is, as text. */
function placeOf(chart: Chart, reading: Reading | null): string {
  return reading ? `at ${chart.x.title} ${format(reading.values[0]?.x ?? reading.at, chart.x.quantity)}` : "Point at the plot for values.";
}
