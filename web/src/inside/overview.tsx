/** The whole time below the panels, with the stretch that they show: it is dragged as a whole or at its ends, by mouse, finger and arrow keys. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Chart, Range } from "../charts/description";
import { drawData } from "../charts/draw";
import { dragged } from "../charts/handles";
import { View } from "../charts/lines";
import type { Link } from "../charts/links";
import { canvasPen } from "../charts/pen";
import { transform, yRange, zoomed } from "../charts/scales";
import { theme } from "../charts/theme";
import { format } from "../charts/units";
import { MARGIN } from "./stacker";

const HEIGHT = 40;
/** Least width of what can be dragged, pixels (WCAG 2.5.8). */
const TARGET = 24;
/** Parts of the whole that an arrow key moves an end, and one with Shift. */
const STEP = 0.01;
const LEAP = 0.1;
/** Shortest stretch, parts of the whole. */
const SHORTEST = 1e-4;
type Part = "from" | "to" | "both";

export function Overview({ chart, link, whole }: { chart: Chart; link: Link; whole: Range }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const track = useRef<HTMLDivElement>(null);
  const draw = () => canvas.current && paint(canvas.current, chart, whole);
  useEffect(() => {
    draw();
    const sizes = new ResizeObserver(draw);
    if (canvas.current?.parentElement) sizes.observe(canvas.current.parentElement);
    return () => sizes.disconnect();
  }, [chart, whole[0], whole[1]]);
  useSignalEffect(() => {
    void theme.value;
    draw();
  });
  const now = link.range.value ?? whole;
  const length = whole[1] - whole[0] || 1;
  const percent = (at: number) => `${((at - whole[0]) / length) * 100}%`;
  const show = (next: Range) => (link.range.value = next[0] <= whole[0] && next[1] >= whole[1] ? null : next);
  const shift = (part: Part, by: number) => show(shifted(now, whole, part, by));
  const grab = (down: PointerEvent, part: Part) => {
    down.preventDefault();
    down.stopPropagation();
    const element = down.currentTarget as HTMLElement;
    element.focus({ preventScroll: true });
    const begin = now;
    dragged(element, down, (event) =>
      show(shifted(begin, whole, part, ((event.clientX - down.clientX) / (track.current?.clientWidth || 1)) * length)),
    );
  };
  const key = (event: KeyboardEvent, part: Part) => {
    const direction = event.key === "ArrowRight" || event.key === "ArrowUp" ? 1 : event.key === "ArrowLeft" || event.key === "ArrowDown" ? -1 : 0;
    if (!direction) return;
    event.preventDefault();
    shift(part, direction * (event.shiftKey ? LEAP : STEP) * length);
  };
  // The stretch is as wide as a finger at least; its ends stand beside it.
  const placeOf = (part: Part) => {
    const begin = `min(${percent(now[0])}, 100% - ${TARGET}px)`;
    if (part === "both") return { left: begin, width: `max(${TARGET}px, ${percent(now[1])} - ${percent(now[0])})` };
    return { left: part === "from" ? begin : `min(100%, max(${percent(now[1])}, ${percent(now[0])} + ${TARGET}px))` };
  };
  const handle = (part: Part, at: number, label: string) => (
    <div
      class={`overview-${part}`}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={whole[0]}
      aria-valuemax={whole[1]}
      aria-valuenow={at}
      aria-valuetext={format(at, "time")}
      style={placeOf(part)}
      onPointerDown={(event) => grab(event, part)}
      onKeyDown={(event) => key(event, part)}
      onDblClick={() => (link.range.value = null)}
    />
  );
  return (
    <div class="overview">
      <canvas ref={canvas} aria-hidden="true" />
      <div
        ref={track}
        class="overview-track"
        style={{ left: `${MARGIN.left}px`, right: `${MARGIN.right}px` }}
        onPointerDown={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          show(
            zoomed(
              { title: "", quantity: "time" },
              now,
              whole,
              1,
              NaN,
              (whole[0] + ((event.clientX - box.left) / box.width) * length - (now[0] + now[1]) / 2) / (now[1] - now[0]),
            ),
          );
        }}
      >
        {handle("both", now[0], "shown time")}
        {handle("from", now[0], "start of the shown time")}
        {handle("to", now[1], "end of the shown time")}
      </div>
    </div>
  );
}

/** A stretch whose begin, end or both are moved; it stays inside the whole. */
export function shifted([from, to]: Range, [first, last]: Range, part: Part, by: number): Range {
  const least = (last - first) * SHORTEST;
  if (part === "from") return [Math.min(Math.max(first, from + by), to - least), to];
  if (part === "to") return [from, Math.max(Math.min(last, to + by), from + least)];
  const begin = Math.min(Math.max(first, from + by), last - (to - from));
  return [begin, begin + (to - from)];
}

function paint(canvas: HTMLCanvasElement, chart: Chart, whole: Range): void {
  const width = Math.max(120, canvas.parentElement?.clientWidth ?? 0);
  const pen = canvasPen(canvas, width, HEIGHT);
  if (!pen) return;
  const area = { left: MARGIN.left, top: 2, width: width - MARGIN.left - MARGIN.right, height: HEIGHT - 4 };
  const view = new View(area, whole, yRange(chart), transform(chart.x), transform(chart.y));
  drawData(pen, { ...chart, spans: [], marks: [] }, view, theme.peek());
}
