/** The stack of panels on the page: canvas, heads with the values under the cursor, keys. */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import "../charts/plot.css";
import type { Mark, Range } from "../charts/description";
import type { Link } from "../charts/links";
import { read } from "../charts/reading";
import { format } from "../charts/units";
import { headOf, type Panel, Stacker } from "./stacker";

interface Props {
  panels: Panel[];
  marks: Mark[];
  whole: Range;
  link: Link;
  /** What the events near a time are, as text. */
  eventsAt: (at: number, within: number) => string;
  /** The time of the next event in a direction; null where there is none. */
  nextEvent: (from: number, direction: 1 | -1) => number | null;
  /** Whether the scales are those of what is shown. */
  fits?: boolean;
}

const KEYS =
  "Arrow keys left and right move the cursor, with Shift what is shown; plus and minus zoom, 0 shows everything, N and P go to the next and the previous event.";
/** Pixels around the cursor in which events are read. */
const NEAR = 4;

export function Stack({ panels, marks, whole, link, eventsAt, nextEvent, fits = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLDivElement>(null);
  const stacker = useRef<Stacker | null>(null);
  const tops = useSignal<number[]>([]);
  const aloud = useSignal("");
  const latest = useRef({ panels, eventsAt });
  latest.current = { panels, eventsAt };

  useEffect(() => {
    const ears = {
      placed: (now: number[]) => {
        if (now.join() !== tops.peek().join()) tops.value = now;
      },
      loud: (at: number) => (aloud.value = spoken(latest.current.panels, at, latest.current.eventsAt(at, near(made)))),
    };
    const made: Stacker = new Stacker(canvas.current as HTMLCanvasElement, over.current as HTMLElement, link, ears);
    stacker.current = made;
    return () => made.destroy();
  }, [link]);
  useLayoutEffect(() => stacker.current?.update(panels, marks, whole, fits));

  const near = (made: Stacker | null) => {
    const [from, to] = made?.shown() ?? whole;
    return ((to - from) / Math.max(100, over.current?.clientWidth ?? 100)) * NEAR;
  };
  const key = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== host.current) return;
    const direction = event.key === "n" ? 1 : event.key === "p" ? -1 : 0;
    const made = stacker.current;
    if (direction) {
      const [from, to] = made?.shown() ?? whole;
      const next = nextEvent(link.cursor.peek() ?? (direction > 0 ? from : to), direction);
      if (next !== null) made?.move(next);
      event.preventDefault();
    } else if (made?.key(event)) event.preventDefault();
  };
  return (
    <div class="stack">
      <div ref={host} class="stack-host" role="application" aria-roledescription="chart" tabIndex={0} aria-label={`The run over time: ${panels.map((each) => each.chart.title).join(", ")}. ${KEYS}`} onKeyDown={key}>
        <canvas ref={canvas} aria-hidden="true" />
        {panels.map((panel, place) => (
          <Head key={panel.id} panel={panel} link={link} top={tops.value[place] ?? 0} />
        ))}
        <div ref={over} class="stack-over" />
      </div>
      <Under link={link} text={(at) => eventsAt(at, near(stacker.current))} />
      <p class="aloud" aria-live="polite">{aloud.value}</p>
    </div>
  );
}

/** A panel's title with its unit, and the values under the cursor. */
function Head({ panel, link, top }: { panel: Panel; link: Link; top: number }) {
  const { chart } = panel;
  const values = useSignal("");
  useSignalEffect(() => {
    const at = link.cursor.value;
    values.value = at === null ? "" : read({ ...chart, series: panel.readings ?? chart.series }, at).values.map((value) => `${value.label} ${value.text}`).join(" · ");
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
