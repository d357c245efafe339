import { beforeEach, expect, test } from "vitest";
import { start } from "../src/server/start";
import type { State } from "../src/server/contract";
import { options, state } from "../src/state/state";
import { go, here, leave, moved, WALKS } from "../src/walks/walk";

const standard = { rtt: "50ms", jitter: "", rate: "42mbit", order: "", cca: ["cubic", "bbr"], changes: [], ecn: false } as unknown as State;
const [cliff] = WALKS;
if (!cliff) throw new Error("there are no walks");

beforeEach(() => {
  start.value = { version: "", state: standard, controls: [] } as unknown as typeof start.value;
  state.value = standard;
  options.value = { view: "learn", "curves.metrics": "rtt" };
});

test("a step is a state, a view and its place in the address, and nothing of what was there before", () => {
  go(cliff, 2);
  expect(state.value).toEqual({ ...standard, jitter: "4ms" });
  expect(options.value).toEqual({ view: "curves", "curves.axis": "jitter", "learn.walk": "cliff", "learn.step": "2" });
  expect(here.value?.number).toBe(2);
});

test("beyond the ends there is no step", () => {
  go(cliff, 1);
  go(cliff, 0);
  expect(here.value?.number).toBe(1);
  go(cliff, cliff.steps.length + 1);
  expect(here.value?.number).toBe(1);
});

test("a path that was moved is told, and the step brings it back", () => {
  go(cliff, 1);
  expect(moved.value).toBe(false);
  state.value = { ...state.value, rtt: "80ms" };
  expect(moved.value).toBe(true);
  go(cliff, 1);
  expect(moved.value).toBe(false);
});

test("an address with a step that is not there has the nearest one, with a walk that is not there none", () => {
  options.value = { "learn.walk": "cliff", "learn.step": "99" };
  expect(here.value?.number).toBe(cliff.steps.length);
  options.value = { "learn.walk": "cliff", "learn.step": "<b>" };
  expect(here.value?.number).toBe(1);
  options.value = { "learn.walk": "nowhere" };
  expect(here.value).toBeNull();
});

test("the end of a walk leaves path and view", () => {
  go(cliff, 3);
  leave();
  expect(here.value).toBeNull();
  expect(options.value).toEqual({ view: "curves", "curves.axis": "jitter" });
  expect(state.value.jitter).toBe("8ms");
});
