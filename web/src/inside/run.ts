/** What the view has asked and got: the runs over their whole time, and finer ones of the stretch that is shown. */
import { batch, computed, effect, signal } from "@preact/signals";
import type { Range } from "../charts/description";
import { keepWithin, link } from "../charts/links";
import { question } from "../server/question";
import { start } from "../server/start";
import { read } from "../state/address";
import type { Options, State } from "../server/contract";
import { option, state } from "../state/state";
import { seconds } from "./changes";
import { collect, type Run } from "./data";
import { seedOf } from "./seeds";

const asked = question("inside");
const detail = question("detail");
/** The stretch of time and the cursor of all panels. */
export const time = link("inside");
export const seed = option("inside.seed", "0");
const controls = option("inside.controls", "");
export const pin = option("inside.pin", "");
const samples = option("inside.samples", "5000");

/** The runs as they were complete last: while newer ones come in, these stay. */
export const whole = signal<Run[]>([]);
const fine = signal<{ runs: Run[]; from: number; to: number } | null>(null);
/** What is wrong, as a line. */
export const problem = computed(() => asked.error.value);
export const busy = computed(() => asked.status.value === "asked" || asked.status.value === "running");

/** Runs with the finest samples of what is shown. */
export const shown = computed(() => {
  const [range, there] = [time.range.value, fine.value];
  return range && there && there.runs.length === whole.value.length && there.from <= range[0] && there.to >= range[1] ? there.runs : whole.value;
});
/** How long the state's runs are, s: also where none has come. */
export const duration = computed(() => seconds(state.value.duration || STANDARD) ?? whole.value[0]?.duration_s ?? 1);

/** From 0 to the end of the longest run. */
export const ends = computed<Range>(() => [0, Math.max(1e-3, ...whole.value.map((run) => run.duration_s))]);

/** The congestion controls that are shown: the chosen ones of the state's, the first two where none is chosen. */
export const shownControls = computed(() => {
  const there = state.value.cca;
  const chosen = controls.value.split("|").filter((label) => there.includes(label));
  return chosen.length ? chosen : there.slice(0, 2);
});

/** The pinned state; null where none is. */
export const pinned = computed<State | null>(() => (pin.value && start.value ? read(pin.value, start.value.state).state : null));

const STANDARD = "10s";
/** Samples of a flow on the way of a pixel below which finer ones are fetched, and how much more than what is shown. */
const COARSE = 700;
const BEYOND = 0.5;
const SETTLED_MS = 150;

function optionsNow(): Options["inside"] {
  return {
    ...(seed.value === "median" ? { median: true } : { seed: seedOf(seed.value) }),
    controls: shownControls.value,
    pinned: pinned.value,
    samples: Math.round(Math.min(20_000, Math.max(100, Number(samples.value) || 5_000))),
  };
}

/** Asks while the view is there; returns what ends that. */
export function follow(): () => void {
  const endings = [
    effect(() => {
      void state.value;
      asked.ask(optionsNow());
    }),
    effect(() => {
      const [blocks, status] = [asked.blocks.value, asked.status.value];
      if (status !== "done" && whole.peek().length) return;
      const runs = collect(blocks);
      if (status !== "done" && !runs.length) return;
      // Finer samples that are still on their way are those of the runs before.
      if (detail.status.peek() === "asked" || detail.status.peek() === "running") detail.cancel();
      batch(() => {
        [whole.value, fine.value] = [runs, null];
        keepWithin(time, ends.value);
      });
    }),
    effect(() => {
      const window = detail.status.value === "done" ? detail.blocks.value : null;
      if (!window || !wanted) return;
      fine.value = { runs: collect(window), from: wanted[0], to: wanted[1] };
    }),
    followRange(),
  ];
  return () => {
    endings.forEach((each) => each());
    asked.cancel();
    detail.cancel();
  };
}

let wanted: Range | null = null;

/** Asks for finer samples once the shown stretch has settled. */
function followRange(): () => void {
  let timer = 0;
  const stop = effect(() => {
    const [range, runs, there] = [time.range.value, whole.value, fine.value];
    clearTimeout(timer);
    const first = runs[0];
    if (!range || !first || (range[1] - range[0]) / first.interval_s > COARSE) return;
    const enough =
      there && there.from <= range[0] && there.to >= range[1] && (range[1] - range[0]) / (there.runs[0]?.interval_s ?? Infinity) > COARSE;
    if (enough) return;
    timer = window.setTimeout(() => {
      const more = (range[1] - range[0]) * BEYOND;
      wanted = [Math.max(0, range[0] - more), Math.min(ends.peek()[1], range[1] + more)];
      detail.ask({ ...optionsNow(), median: false, seed: first.seed, samples: 5_000, start_s: wanted[0], stop_s: wanted[1] });
    }, SETTLED_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}
