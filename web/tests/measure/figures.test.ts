import { expect, test } from "vitest";
import css from "../../src/measure/measure.css?raw";
import { figures, held } from "../../src/measure/figures";
import { latest } from "../../src/measure/latest";
import type { Block, Named } from "../../src/server/blocks";
import { CAUSES } from "../../src/server/contract";
import { block } from "../blocks";

const grey = { colour: "#888", dash: 0, marker: "o" };
const looks = { observed: grey, replay: grey };

test("observation and replay stand in one chart, with what was fitted", () => {
  const observed = block<Named<"measure", "observed">>(
    "observed",
    { seconds: 10 },
    { "goodput.t": [1, 2], goodput: [1e6, 2e6], "rtt.t": [1], rtt: [0.05] },
  );
  const replay = block<Named<"measure", "replay">>(
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
  const limits = block<Named<"measure", "limits">>("limits", { causes: ["application", "pacing"] }, { begin: [0, 1], end: [1, 4], cause: [1, 7] });
  expect(held(limits)).toEqual([
    { begin: 0, end: 1, cause: "pacing" },
    { begin: 1, end: 4, cause: "not identifiable" },
  ]);
  expect(held(undefined)).toEqual([]);
});

test("the newest block of each name counts", () => {
  const [old, now] = [block<Block<"kept">>("kept", { n: 1 }), block<Block<"kept">>("kept", { n: 2 })];
  expect(latest([old, block<Block<"kept">>("axis"), now]).kept).toBe(now);
});

test("every cause but one has a pattern of its own: colour is not the only sign", () => {
  const styles = Object.values(CAUSES).map(({ pattern }) => new RegExp(`stretch\\.${pattern} \\{(.*)\\}`).exec(css)?.[1]);
  expect(styles.filter((style) => !style)).toHaveLength(1);
  expect(new Set(styles).size).toBe(styles.length);
});
