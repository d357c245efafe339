/** The stack of panels on the page: canvas, heads with the values under the cursor, keys. */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import "../charts/plot.css";
import type { Link } from "../charts/links";
import { read } from "../charts/reading";
import { format } from "../charts/units";
import { type Scene, Viewport } from "../charts/viewport";
import { arranged, boxOf, drawStack, headOf, MARGIN, type Panel, type Stacked, TIME } from "./stacker";

interface Props extends Omit<Stacked, "fits"> {
  link: Link;
  /** What the events near a time are, as text. */
  eventsAt: (at: number, within: number) => string;
  /** The time of the next event in a direction; null where there is none. */
  nextEvent: (from: number, direction: 1 | -1) => number | null;
  fits?: boolean;
}

const KEYS =
  "Arrow keys left and right move the cursor, with Shift what is shown; plus and minus zoom, 0 shows everything, N and P go to the next and the previous event.";
/** Pixels around the cursor in which events are read. */
const NEAR = 4;
/** An arrow key's step of the cursor, a part of what is shown. */
const STEP = 1 / 200;

export function Stack({ panels, marks, whole, link, eventsAt, nextEvent, fits = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLDivElement>(null);
  const viewport = useRef<Viewport | null>(null);
  const aloud = useSignal("");

  const textAt = (at: number) => eventsAt(at, viewport.current?.per(NEAR) ?? 0);
  const scene = (): Scene => {
    let { areas } = arranged(panels, 0);
    return {
      x: TIME,
      whole,
      marks,
      arrange(width) {
        const places = arranged(panels, width);
        areas = places.areas;
        return { box: boxOf(areas, width), height: places.height };
      },
      draw: (pen, shown, now) => drawStack(pen, { panels, marks, whole, fits }, areas, shown, now),
      step: (at, direction, { xs: [from, to] }) => (at ?? (from + to) / 2) + direction * STEP * (to - from),
      aloud: (at) => (aloud.value = spoken(panels, at, textAt(at))),
      pick: (at) => viewport.current?.move(at),
    };
  };
  useLayoutEffect(() => {
    const made = new Viewport(canvas.current as HTMLCanvasElement, over.current as HTMLElement, link, scene());
    viewport.current = made;
    return () => made.destroy();
  }, [link]);
  useLayoutEffect(() => viewport.current?.update(scene()), [panels, marks, whole, fits]);

  const key = (event: KeyboardEvent) => {
    const made = viewport.current;
    if (!made || event.altKey || event.ctrlKey || event.metaKey || event.target !== host.current) return;
    const direction = event.key === "n" ? 1 : event.key === "p" ? -1 : 0;
    if (direction) {
      const next = nextEvent(link.cursor.peek() ?? made.shown()[direction > 0 ? 0 : 1], direction);
      if (next !== null) made.move(next);
      event.preventDefault();
    } else if (made.key(event)) event.preventDefault();
  };
  const { areas } = arranged(panels, 0);
  return (
    <div class="stack">
      <div
        ref={host}
        class="plot-host"
        role="application"
        aria-roledescription="chart"
        tabIndex={0}
        aria-label={`The run over time: ${panels.map((each) => each.chart.title).join(", ")}. ${KEYS}`}
        onKeyDown={key}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {panels.map((panel, place) => (
          <Head key={panel.id} panel={panel} link={link} top={(areas[place]?.top ?? 0) - MARGIN.head} />
        ))}
        <div ref={over} class="plot-over rows" />
      </div>
      <Under link={link} text={textAt} />
      <p class="aloud" aria-live="polite">
        {aloud.value}
      </p>
    </div>
  );
}

/** A panel's title with its unit, and the values under the cursor. */
function Head({ panel, link, top }: { panel: Panel; link: Link; top: number }) {
  const { chart } = panel;
  const values = useSignal("");
  useSignalEffect(() => {
    const at = link.cursor.value;
    values.value =
      at === null
        ? ""
        : read({ ...chart, series: panel.readings ?? chart.series }, at)
            .values.map((value) => `${value.label} ${value.text}`)
            .join(" · ");
  });
  return (
    <p class="stack-head" style={{ top: `${top}px` }}>
      <span class="name">{headOf(panel)}</span> <span class="values">{values}</span>
    </p>
  );
}

/** The line under the panels: where the cursor is and what happened there. */
function Under({ link, text }: { link: Link; text: (at: number) => string }) {
  const line = useComputed(() => {
    const at = link.cursor.value;
    if (at === null) return "Drag zooms, Shift and drag moves, a double click shows all.";
    return `at ${format(at, "time", 5)}${text(at) ? `: ${text(at)}` : ""}`;
  });
  return <p class="stack-under">{line}</p>;
}

function spoken(panels: readonly Panel[], at: number, events: string): string {
  const said = panels.flatMap(({ chart, readings }) => {
    const values = read({ ...chart, series: readings ?? chart.series }, at).values.map((value) => `${value.label} ${value.text}`);
    return values.length ? [`${chart.title}: ${values.join(", ")}`] : [];
  });
  return `Time ${format(at, "time", 5)}. ${events ? `${events}. ` : ""}${said.join(". ")}.`;
}
