import { expect, test } from "vitest";
import { curve, metricOf } from "../../src/measure/curve";
import { CAUSES, figures, held } from "../../src/measure/figures";
import { latest } from "../../src/measure/latest";
import type { Block } from "../../src/server/blocks";

const block = (name: string, values: Record<string, unknown>, columns: Record<string, number[]> = {}): Block => ({
  kind: "measure",
  generation: 1,
  name,
  values,
  columns: Object.fromEntries(Object.entries(columns).map(([key, numbers]) => [key, Float64Array.from(numbers)])),
});
const grey = { colour: "#888", dash: 0, marker: "o" };
const looks = { observed: grey, replay: grey };

test("observation and replay stand in one chart, with what was fitted", () => {
  const observed = block("observed", { seconds: 10 }, { "goodput.t": [1, 2], goodput: [1e6, 2e6], "rtt.t": [1], rtt: [0.05] });
  const replay = block(
    "replay",
    { cca: "cubic" },
    { t: [1, 2], goodput: [1e6, 1e6], "goodput.low": [9e5, 9e5], "goodput.high": [2e6, 2e6], rtt: [NaN, NaN], flight: [1, 2] },
  );
  const charts = figures(observed, replay, { rate: { value: 3e6, low: 2e6, high: null } }, looks);
  expect(charts.map((chart) => [chart.title, chart.series.map((series) => series.label)])).toEqual([
    ["Goodput", ["observed", "replay, cubic", "bottleneck, fitted"]],
    ["RTT", ["observed"]],
    ["In flight", ["replay, cubic"]],
  ]);
  expect(charts[0]?.series[1]?.high).toEqual(Float64Array.from([2e6, 2e6]));
  expect(charts[0]?.series[2]).toMatchObject({ x: [0, 10], y: [3e6, 3e6] });
  expect(charts[0]?.series[2]).not.toHaveProperty("low");
});

test("what held the flow has its cause by name, also one that nobody knows", () => {
  const limits = block("limits", { causes: ["application", "pacing"] }, { begin: [0, 1], end: [1, 4], cause: [1, 7] });
  expect(held(limits)).toEqual([
    { begin: 0, end: 1, cause: "pacing" },
    { begin: 1, end: 4, cause: "unknown" },
  ]);
  expect(held(undefined)).toEqual([]);
});

test("the newest block of each name counts", () => {
  const [old, now] = [block("kept", { n: 1 }), block("kept", { n: 2 })];
  expect(latest([old, block("axis", {}), now]).kept).toBe(now);
});

test("a curve of kept results has a line for each control, in the order of the axis", () => {
  const blocks = {
    axis: block("axis", { title: "jitter", quantity: "time" }, { x: [0, 0.004, 0.008] }),
    points: block(
      "points",
      {},
      { place: [2, 0, 1], control: [0, 0, 1], n: [5, 5, 3], goodput: [1, 9, 4], "goodput.low": [0, 8, NaN], "goodput.high": [2, 10, NaN] },
    ),
    runs: block("runs", {}, { place: [0, 0, 1], control: [0, 0, 1], seed: [0, 1, 0], goodput: [8, 10, 4] }),
  };
  const chart = curve(blocks, metricOf("goodput"), ["cubic", "bbr"], () => grey);
  expect(chart?.series.map(({ label, x, y, n }) => ({ label, x, y, n }))).toEqual([
    { label: "cubic", x: [0, 0.008], y: [9, 1], n: [5, 5] },
    { label: "bbr", x: [0.004], y: [4], n: [3] },
  ]);
  expect(chart?.series[0]?.strip).toEqual({ x: [0, 0], y: [8, 10] });
  expect(curve({}, metricOf("goodput"), [], () => grey)).toBeNull();
});

test("an address that names no metric shows the goodput", () => {
  expect(["rtt", "", "constructor", "__proto__"].map((name) => metricOf(name).name)).toEqual(["rtt", "goodput", "goodput", "goodput"]);
});

test("no two causes have the same pattern: colour is not the only sign", () => {
  const patterns = Object.values(CAUSES).map((each) => each.pattern);
  expect(new Set(patterns).size).toBe(patterns.length);
});
