/** The view `map`: one number over two axes of the path, filled coarse to fine, where it changes most first. */
import { computed, signal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hereOn, textOf, titled } from "../axes/axes";
import { Exports } from "../charts/exports";
import type { Figure } from "../charts/save";
import { theme } from "../charts/theme";
import { inBase } from "../charts/units";
import { look } from "../controls/look";
import { subject, whole } from "../curves/asking";
import { type AxisDocument, type MapGrid, type Options, QUANTITIES } from "../server/contract";
import { question } from "../server/question";
import { start } from "../server/start";
import { change, choose, option, state } from "../state/state";
import { Button, DataTable, Progress, Select, Space, Status, Toolbar } from "../ui";
import { MapCanvas } from "./canvas";
import { drawMap, picture, type Picture } from "./draw";
import { gather, type Grid } from "./grid";
import "./map.css";

const map = question("map");
const x = option("map.x", "jitter");
const y = option("map.y", "rtt");
const quantity = option("map.quantity", "ratio");
const first = option("map.first", "");
const second = option("map.second", "");
const resolution = option("map.resolution", "20");
const seeds = option("map.seeds", "5");

const CHOICES = Object.entries(QUANTITIES).map(([value, { title }]) => ({ value, title }));
/** A slider that moves asks when it has rested this long, ms. */
const REST = 250;
const FILE = { width: 900, height: 660 };

/** What the map is about, and the texts that its axes had when it was asked. */
const asked = signal({ subject: "", x: "", y: "" });
const stopped = signal(false);
let resting = 0;

/** The first and the second congestion control: those that were chosen, otherwise the state's. */
const pair = computed(() => {
  const all = state.value.cca ?? [];
  const one = first.value && all.includes(first.value) ? first.value : (all[0] ?? "");
  const other = second.value && all.includes(second.value) && second.value !== one ? second.value : (all.find((each) => each !== one) ?? "");
  return { first: one, second: other };
});
const fresh = computed(() => gather(map.blocks.value));
let kept: Grid | null = null;

/** The newest grid that shows something: that of what was asked before, until the first coarse cells are there. */
const grid = computed(() => {
  const there = fresh.value;
  if (there && (there.known > 0 || !kept)) kept = there;
  return kept;
});
const image = computed<Picture | null>(() => (grid.value ? picture(grid.value, (label) => look(label).colour, theme.value) : null));

export function MapView() {
  useSignalEffect(ask);
  useEffect(() => () => leave(), []);
  const there = image.value;
  const problem = map.error.value;
  return (
    <section aria-label="Cliff map" class="map-view">
      <Choices />
      {problem ? (
        <Status kind="problem">{problem}</Status>
      ) : there ? (
        <Shown image={there} />
      ) : (
        <Status kind="working">Running the first cells …</Status>
      )}
    </section>
  );
}

function wanted(): Options["map"] {
  const { first: one, second: other } = pair.value;
  const ratio = quantity.value === "ratio";
  return {
    x: x.value,
    y: y.value,
    quantity: quantity.value as MapGrid["quantity"],
    first: one,
    ...(ratio ? { second: other } : {}),
    resolution: whole(resolution.value),
    seeds: whole(seeds.value),
  };
}

/** Asks where what is asked has changed, once the sliders rest; moving along the map's own axes changes nothing. */
function ask(): void {
  const options = wanted();
  // The other congestion controls have no part in the map.
  const about = subject({ ...state.value, cca: [] }, [x.value, y.value], options);
  clearTimeout(resting);
  if (!state.value.rtt || (about === asked.peek().subject && map.status.peek() !== "failed")) return;
  if (asked.peek().subject) resting = window.setTimeout(() => begin(about, options), REST);
  else begin(about, options);
}

function begin(about: string, options: Options["map"]): void {
  asked.value = { subject: about, x: textOf(x.peek(), state.peek()), y: textOf(y.peek(), state.peek()) };
  stopped.value = false;
  map.ask(options);
}

function again(): void {
  begin(subject({ ...state.value, cca: [] }, [x.value, y.value], wanted()), wanted());
}

function stop(): void {
  map.cancel();
  stopped.value = true;
}

function leave(): void {
  clearTimeout(resting);
  if (map.status.peek() !== "asked" && map.status.peek() !== "running") return;
  map.cancel();
  asked.value = { ...asked.peek(), subject: "" };
}

function Choices() {
  const axes = start.value?.axes ?? [];
  const other = (taken: string) => axes.filter((each) => each.axis !== taken).map((each) => ({ value: each.axis, title: titled(each) }));
  const controls = state.value.cca ?? [];
  const ratio = quantity.value === "ratio";
  return (
    <Toolbar label="Map">
      <Select label="Across" value={x.value} choices={other(y.value)} onChoose={(name) => choose("map.x", name)} />
      <Select label="Up" value={y.value} choices={other(x.value)} onChoose={(name) => choose("map.y", name)} />
      <Select label="Shows" value={quantity.value} choices={CHOICES} onChoose={(name) => choose("map.quantity", name)} />
      <span class="pair">
        <Select label={ratio ? "of" : "of control"} value={pair.value.first} choices={controls} onChoose={(label) => choose("map.first", label)} />
        {ratio && (
          <Select
            label="over"
            value={pair.value.second}
            choices={controls.filter((label) => label !== pair.value.first)}
            onChoose={(label) => choose("map.second", label)}
          />
        )}
      </span>
      <Space />
      <Select
        label="Cells"
        value={resolution.value}
        choices={[10, 20, 30].map((n) => ({ value: String(n), title: `${n} × ${n}` }))}
        onChoose={(n) => choose("map.resolution", n)}
      />
      <Select label="Runs per cell" value={seeds.value} choices={["1", "3", "5", "10", "20"]} onChoose={(n) => choose("map.seeds", n)} />
    </Toolbar>
  );
}

function Shown({ image: there }: { image: Picture }) {
  const { grid: cells } = there;
  const here = hereOf(cells);
  const inside = here && within(cells.xs, here.x) && within(cells.ys, here.y);
  const draw: Figure = (pen, width, height, colours) =>
    drawMap(
      pen,
      picture(cells, (label) => look(label).colour, colours),
      { here, cell: -1 },
      width,
      height,
      colours,
    );
  return (
    <>
      <Filling cells={cells} />
      <MapCanvas image={there} here={here} onPick={(across, up) => change({ [cells.x.axis]: across, [cells.y.axis]: up })} />
      <div class="toolbar">
        {here && !inside && <Outside cells={cells} here={here} />}
        <Space />
        <Exports
          name={`map-${cells.quantity}-${cells.x.axis}-${cells.y.axis}`}
          title="the map"
          draw={draw}
          size={FILE}
          table={() => ({ columns: NAMES(cells), rows: rows(cells) })}
        />
      </div>
      <DataTable title="Table of this map" caption={cells.text} columns={NAMES(cells).map((name) => ({ name }))} rows={() => rows(cells)} />
    </>
  );
}

/** Says that the sliders are not on the map, with what can be done about it. */
function Outside({ cells, here }: { cells: Grid; here: { x: number; y: number } }) {
  const none = [[cells.x, here.x] as const, [cells.y, here.y] as const].find(([axis, value]) => axis.log && !(value > 0));
  if (none)
    return <span class="note">The sliders stand at {none[0].title} 0, which is beyond the left or lower end of this map’s logarithmic axis.</span>;
  return (
    <>
      <span class="note">The sliders stand outside this map.</span>
      <Button onClick={again}>Map where they stand</Button>
    </>
  );
}

/** Where the sliders are on both axes; null where one of them is no number. */
function hereOf({ x: across, y: up }: Grid): { x: number; y: number } | null {
  const at = (axis: AxisDocument, before: string) => hereOn(axis, before, textOf(axis.axis, state.value));
  const [left, above] = [at(across, asked.value.x), at(up, asked.value.y)];
  return left === null || above === null ? null : { x: left, y: above };
}

function within(values: Float64Array, value: number): boolean {
  const [low, high] = [values[0] as number, values[values.length - 1] as number];
  return value >= low - 0.02 * (high - low) && value <= high * 1.02;
}

/** How far it is, with what ends or begins it. */
function Filling({ cells }: { cells: Grid }) {
  const running = map.status.value === "asked" || map.status.value === "running";
  const isOld = running && (map.status.value === "asked" || fresh.value !== cells);
  if (isOld) return <Waiting />;
  const left = cells.seconds === null ? "" : `, about ${Math.max(1, Math.round(cells.seconds))} s left`;
  return (
    <div class="filling">
      <Progress done={cells.done} all={cells.total} label="runs" />
      <span class="note">
        {running
          ? `${cells.done} of ${cells.total} runs, ${cells.known} of ${cells.n.length} cells${left}`
          : `${cells.done} runs in ${cells.known} cells${stopped.value ? "; stopped" : ""}`}
      </span>
      {running ? (
        <Button kind="quiet" onClick={stop}>
          Stop
        </Button>
      ) : (
        stopped.value && (
          <Button kind="quiet" onClick={again}>
            Go on
          </Button>
        )
      )}
    </div>
  );
}

/** What stands above the map of what was asked before, until the new one shows something. */
function Waiting() {
  return (
    <div class="filling">
      <Progress done={0} all={1} label="runs" />
      <span class="note">Running the first cells …; this is the map before the last change.</span>
      <Button kind="quiet" onClick={stop}>
        Stop
      </Button>
    </div>
  );
}

const NAMES = (cells: Grid) => [
  inBase(cells.x.title, cells.x.quantity),
  inBase(cells.y.title, cells.y.quantity),
  cells.quantity,
  "low",
  "high",
  "runs",
];

/** A row for each cell that has run, in base units. */
function rows(cells: Grid): number[][] {
  return Array.from(cells.n, (n, at) => [
    cells.xs[at % cells.xs.length] as number,
    cells.ys[Math.floor(at / cells.xs.length)] as number,
    cells.value[at] as number,
    cells.low[at] as number,
    cells.high[at] as number,
    n,
  ]).filter((row) => (row[5] as number) > 0);
}
