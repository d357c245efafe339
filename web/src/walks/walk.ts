/** The guided walks: each is a file of data, with a state, a view and two sentences for each step. Their numbers are tested in `tests/docs/test_walks.py`. */
import { batch, computed } from "@preact/signals";
import { start } from "../server/start";
import { jump } from "../state/address";
import type { State } from "../server/contract";
import { option, options, state } from "../state/state";
import bufferbloat from "./data/bufferbloat.json";
import cliff from "./data/cliff.json";
import fairness from "./data/fairness.json";
import hystart from "./data/hystart.json";
import probes from "./data/probes.json";
import spike from "./data/spike.json";

export interface Step {
  /** Two sentences. */
  text: string[];
  /** The view that is shown. */
  view: string;
  /** Options of the view, as they stand in the address. */
  options: Readonly<Record<string, string | undefined>>;
  /** What of the state differs from the one with which the page begins. */
  state: Partial<State>;
}

export interface Walk {
  id: string;
  title: string;
  about: string;
  steps: Step[];
}

export const WALKS: readonly Walk[] = [cliff, hystart, probes, bufferbloat, spike, fairness];

const WALK = "learn.walk";
const STEP = "learn.step";
const walk = option(WALK, "");
const place = option(STEP, "1");

/** The walk that is on, and the number of its step from 1; null where none is. */
export const here = computed(() => {
  const on = WALKS.find((each) => each.id === walk.value);
  if (!on) return null;
  const number = Math.min(on.steps.length, Math.max(1, Math.round(Number(place.value)) || 1));
  const step = on.steps[number - 1];
  return step ? { walk: on, number, step } : null;
});

/** The state of a step. */
function stateOf(step: Step, standard: State): State {
  return { ...standard, ...step.state };
}

/** Whether somebody has moved the path away from the step's. */
export const moved = computed(() => {
  const standard = start.value?.state;
  if (!here.value || !standard) return false;
  const meant = stateOf(here.value.step, standard);
  return Object.entries(meant).some(([name, value]) => JSON.stringify(value) !== JSON.stringify(state.value[name as keyof State]));
});

/** Goes to a step, counted from 1: the sliders, the view and its options become the step's. */
export function go(to: Walk, number: number): void {
  const step = to.steps[number - 1];
  const standard = start.peek()?.state;
  if (!step || !standard) return;
  const chosen: Record<string, string> = { view: step.view, [WALK]: to.id, [STEP]: String(number) };
  for (const [name, value] of Object.entries(step.options)) if (value !== undefined) chosen[name] = value;
  jump();
  batch(() => {
    state.value = stateOf(step, standard);
    options.value = chosen;
  });
}

/** Ends the walk; the path stays where it is. */
export function leave(): void {
  const { [WALK]: _walk, [STEP]: _step, ...rest } = options.peek();
  options.value = rest;
}
