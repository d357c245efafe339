/** The view "Inside one run": what the senders and the bottleneck's queue did over time, of two controls or of two scenarios at the same seed. */
import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "./inside.css";
import type { Mark } from "../charts/description";
import { format } from "../charts/units";
import { start } from "../server/start";
import { write } from "../state/address";
import { change, choose, option, state } from "../state/state";
import { Button, Toggle, Toolbar } from "../ui";
import { ended, happenings, moved, titleOf } from "./changes";
import { eventRows, eventText, neighbour } from "./events";
import { StackFiles } from "./files";
import { Legend, Tables } from "./legend";
import { Overview } from "./overview";
import { CHOICES, drawn, panelsOf, USUAL } from "./panels";
import { busy, duration, ends, follow, pin, pinned, problem, seed, shown, shownControls, time, whole } from "./run";
import { look } from "../controls/look";
import { seedOf, Seeds } from "./seeds";
import { Stack } from "./stack";
import { END } from "./stacker";
import { Timeline } from "./timeline";
import { everyValue } from "./values";

const chosen = option("inside.panels", USUAL);
const names = computed(() => chosen.value.split(","));
/** Colour of the time without a path. */
const OUTAGE = "#7a858f";
const fits = option("inside.fit", "no");

const lines = computed(() => drawn(shown.value, look));
const changes = computed(() => happenings(state.value.changes));
const wholePanels = computed(() => panelsOf(names.value, drawn(whole.value, look)));
/** The panels; finer samples keep the scales of the whole run. */
const panels = computed(() => {
  const outages = changes.value.flatMap(({ at, until }) => (until === null ? [] : [{ from: at, to: until, label: "outage", colour: OUTAGE }]));
  const made = shown.value === whole.value ? wholePanels.value : panelsOf(names.value, lines.value);
  return made.map((panel) => ({
    ...panel,
    chart: { ...panel.chart, y: { ...panel.chart.y, ...scaleOf(panel.id) }, spans: [...outages, ...(panel.chart.spans ?? [])] },
  }));
});
const overview = computed(() => {
  const [first] = panelsOf(["cwnd"], drawn(whole.value, look));
  return first
    ? { ...first.chart, series: first.chart.series.filter(({ label }) => !label.includes(", ")).map((each) => ({ ...each, width: 1 })) }
    : null;
});

function scaleOf(id: string) {
  const y = wholePanels.value.find((panel) => panel.id === id)?.chart.y;
  return y?.to === undefined ? {} : { from: y.from ?? 0, to: y.to };
}

/** The changes of the path as lines through all panels, which can be dragged. */
const marks = computed<Mark[]>(() =>
  changes.value.flatMap((each, place) => {
    const end = duration.value;
    const set = (texts: string[]) => change({ changes: texts });
    const begin: Mark = {
      id: `${place}`,
      at: each.at,
      label: titleOf(each),
      kind: "event",
      onMove: (to) => set(moved(state.peek().changes, happenings(state.peek().changes)[place] ?? each, to, end)),
    };
    if (each.until === null) return [begin];
    return [
      begin,
      {
        id: `${place}${END}`,
        at: each.until,
        label: `end of ${titleOf(each)}`,
        kind: "event",
        onMove: (to) => set(ended(state.peek().changes, happenings(state.peek().changes)[place] ?? each, to, end)),
      },
    ];
  }),
);

export function Inside() {
  useEffect(follow, []);
  const there = lines.value.length > 0;
  return (
    <div class="inside-view">
      <Choices />
      {problem.value && (
        <p class="inside-problem" role="status">
          {problem.value}
          {there && " What is shown below is the run before."}
        </p>
      )}
      <Legend lines={lines.value} />
      <div aria-busy={busy.value} class={there ? undefined : "inside-empty"}>
        {there && (
          <Stack
            panels={panels.value}
            marks={marks.value}
            whole={ends.value}
            link={time}
            eventsAt={(at, within) => eventText(lines.peek(), at, within)}
            nextEvent={(from, direction) => neighbour(lines.peek(), from, direction)}
            fits={fits.value === "yes"}
          />
        )}
        {there && overview.value && <Overview chart={overview.value} link={time} whole={ends.value} />}
      </div>
      <PanelChips />
      <Bounds />
      <Timeline end={duration.value} />
      {there && <Tables lines={lines.value} panels={panels.value} shown={() => time.range.value ?? ends.value} />}
      {there && (
        <StackFiles
          name="inside-one-run"
          title="the run over time"
          lines={lines.value}
          panels={panels.value}
          marks={marks.value}
          whole={ends.value}
          link={time}
          fits={fits.value === "yes"}
          table={() => ({
            columns: ["time (s)", "run", "quantity or event", "value or count"],
            rows: [...everyValue(panels.peek()), ...eventRows(lines.peek()).map((row) => row.slice(0, 4))],
          })}
        />
      )}
    </div>
  );
}

/** Which runs. */
function Choices() {
  const now = whole.value[0]?.seed ?? seedOf(seed.value);
  return (
    <Toolbar label="Which run">
      <Seeds now={now} go={(to) => choose("inside.seed", String(to))} label="Seed">
        <Button pressed={seed.value === "median"} onClick={() => choose("inside.seed", seed.value === "median" ? String(now) : "median")}>
          The median run
        </Button>
      </Seeds>
      {!state.value.mix && state.value.cca.length > 1 && <Controls />}
      <Pin />
      <Toggle label="Scales fit what is shown" on={fits.value === "yes"} onChange={(on) => choose("inside.fit", on ? "yes" : "no")} />
    </Toolbar>
  );
}

/** Which panels. */
function PanelChips() {
  const toggle = (id: string) => {
    const next = names.value.includes(id) ? names.value.filter((each) => each !== id) : [...names.value, id];
    choose(
      "inside.panels",
      CHOICES.map((each) => each.id)
        .filter((each) => next.includes(each))
        .join(","),
    );
  };
  return (
    <div class="inside-chips" role="group" aria-label="Panels">
      {CHOICES.map(({ id, title }) => (
        <Button key={id} pressed={names.value.includes(id)} onClick={() => toggle(id)}>
          {title}
        </Button>
      ))}
    </div>
  );
}

/** Which congestion controls are shown, at least one. */
function Controls() {
  const now = shownControls.value;
  const toggle = (label: string) => {
    const next = state.value.cca.filter((each) => (each === label ? !now.includes(label) : now.includes(each)));
    if (next.length) choose("inside.controls", next.join("|"));
  };
  return (
    <span class="inside-controls" role="group" aria-label="Congestion controls that are shown">
      {state.value.cca.map((label) => (
        <Button key={label} pressed={now.includes(label)} onClick={() => toggle(label)}>
          {label}
        </Button>
      ))}
    </span>
  );
}

/** Pins the scenario as it is now, to compare with what the sliders do next. */
function Pin() {
  const standard = start.value?.state;
  if (!standard) return null;
  if (pinned.value) {
    const words = [...new URLSearchParams(pin.value)]
      .filter(([name]) => Object.hasOwn(standard, name))
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    return (
      <span class="inside-pin">
        <Button pressed={true} onClick={() => choose("inside.pin", "")}>
          Compared with the pinned scenario
        </Button>
        <span class="note">{words || "the default path"}</span>
      </span>
    );
  }
  return <Button onClick={() => choose("inside.pin", write(state.value, {}, standard) || "pinned")}>Pin this scenario to compare</Button>;
}

/** What the bound on the latency spike says about each drop of the rate. */
function Bounds() {
  const first = whole.value.find((run) => !run.pinned);
  const said = (first?.bounds ?? []).map((bound) => `${format(bound.at_s, "time")}: ${bound.text}`);
  return said.length ? <p class="note">Bound on the latency spike at {said.join(" · ")}</p> : null;
}
