/** The map on the page: a canvas with a cursor of cells for mouse, finger and keys. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { words } from "../axes/axes";
import { canvasPen } from "../charts/pen";
import { theme } from "../charts/theme";
import { moved, sentence } from "./cursor";
import { cellAt, drawMap, heightOf, layout, type Marks, type Picture } from "./draw";
import type { Grid } from "./grid";

interface Props {
  image: Picture;
  here: Marks["here"];
  /** A cell was chosen: the texts of its x and y. */
  onPick: (x: string, y: string) => void;
}

const KEYS = "Arrow keys move between cells, Enter moves the sliders there.";

export function MapCanvas({ image, here, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const cell = useSignal(-1);
  const aloud = useSignal("");
  const { grid } = image;
  // A map with fewer cells may have come since.
  const at = cell.value < grid.n.length ? cell.value : -1;
  const height = heightOf(width.value || 600);
  const now = theme.value;

  useEffect(() => {
    const watch = new ResizeObserver(() => (width.value = host.current?.clientWidth ?? 0));
    watch.observe(host.current as HTMLElement);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => canvas.current && width.value && paint(canvas.current, image, { here, cell: at }, width.value, height));
    return () => cancelAnimationFrame(frame);
  });

  const pick = (one: number) => {
    const [i, j] = [one % grid.xs.length, Math.floor(one / grid.xs.length)];
    onPick(words(grid.x, grid.xs, grid.xs[i] as number), words(grid.y, grid.ys, grid.ys[j] as number));
  };
  const point = (event: MouseEvent) => cellAt(layout(image, width.value, height), event.offsetX, event.offsetY);
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && at >= 0) pick(at);
    else if (event.key === "Escape") cell.value = -1;
    else {
      const next = moved(grid, at, event.key, here);
      if (next < 0) return;
      cell.value = next;
      aloud.value = sentence(grid, next);
    }
    event.preventDefault();
  };
  void now;
  return (
    <div class="map">
      <p class="map-reading">{at >= 0 ? sentence(grid, at) : hint(grid)}</p>
      <div
        ref={host}
        class="map-host"
        role="application"
        aria-roledescription="map"
        tabIndex={0}
        onKeyDown={key}
        aria-label={`${grid.text}, over ${grid.x.title} and ${grid.y.title}. ${KEYS}`}
      >
        <canvas
          ref={canvas}
          style={{ width: "100%", height: `${height}px` }}
          aria-hidden="true"
          onPointerMove={(event) => (cell.value = point(event))}
          onPointerLeave={() => (cell.value = -1)}
          onClick={(event) => {
            const under = point(event);
            if (under >= 0) pick(under);
          }}
        />
      </div>
      <p class="hidden" aria-live="polite">
        {aloud.value}
      </p>
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, image: Picture, marks: Marks, width: number, height: number): void {
  const pen = canvasPen(canvas, width, height);
  if (pen) drawMap(pen, image, marks, width, height, theme.peek());
}

function hint(grid: Grid): string {
  return `Each cell: ${grid.text}. Click one to move the sliders there.`;
}
