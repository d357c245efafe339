import { expect, test } from "vitest";
import { collect, counts } from "../../src/inside/data";
import { eventRows, eventText, neighbour } from "../../src/inside/events";
import { shifted } from "../../src/inside/overview";
import { drawn, panelsOf, SHAPES } from "../../src/inside/panels";
import { joined } from "../../src/charts/draw";
import { rowsOf } from "../../src/charts/handles";
import { arranged, counted, fitted, isCrowded, withRoom } from "../../src/inside/stacker";
import { freePlace } from "../../src/inside/timeline";
import { everyValue, valueTable } from "../../src/inside/values";
import type { Block } from "../../src/server/blocks";
import { block } from "../blocks";

const kinds = Object.keys(SHAPES).map((name) => ({ name, title: name, about: "" }));
const floats = (...values: number[]) => Float32Array.from(values);
const LOOKS: Record<string, { colour: string; dash: number; marker: string }> = {
  cubic: { colour: "orange", dash: 0, marker: "o" },
  bbr: { colour: "blue", dash: 0, marker: "s" },
};
const look = (label: string) => LOOKS[label]!;

type Own = Block<"inside">;

function run(number: number, ccas: string[], pinned = false): Own[] {
  const numbers = ccas.map((cca) => ({ cca, goodput_mbps: 1 }));
  const about = { run: number, cca: ccas.join("+"), pinned, seed: 0, duration_s: 4, interval_s: 1, numbers, caveats: [] };
  const series = { t: floats(0, 1, 2, 3), cwnd: floats(10, 20, 10, 20), ssthresh: floats(NaN, NaN, NaN, NaN), rtt: floats(0.05, 0.05, 0.1, 0.1) };
  const marks = {
    t: floats(0.5, 0.5, 1.5, 1.5),
    kind: floats(0, 2, 0, 1),
    flow: floats(0, 0, 0, ccas.length - 1),
    count: floats(3, 1, 2, 5),
    cwnd: floats(8, 8, 7, 7),
    "span.from": floats(0.5),
    "span.to": floats(0.9),
    "span.state": floats(3),
    "span.flow": floats(0),
  };
  return [
    block<Own>("run", { ...about, bounds: [{ at_s: 2, d_s: 0.05, spike_s: 0.15, text: "" }] }),
    ...ccas.map((cca, flow) => block<Own>("series", { run: number, flow, cca }, series)),
    block<Own>("queue", { run: number }, { t: floats(0, 1, 2, 3), packets: floats(0, 1, 2, 3) }),
    block<Own>("marks", { run: number, kinds }, marks),
  ];
}

test("a run is there when its marks have come, whatever comes between", () => {
  const [one, other] = [run(0, ["cubic"]), run(1, ["bbr"])];
  expect(collect([...other.slice(0, 2), ...one]).map((each) => each.run)).toEqual([0]);
  expect(collect([other[0]!, ...one, ...other.slice(1)]).map((each) => each.cca)).toEqual(["cubic", "bbr"]);
  expect(counts(collect(one)[0]!).slice(0, 3)).toEqual([5, 5, 1]);
});

test("a control has its colour; its further flows and a pinned scenario have other dashes", () => {
  const lines = drawn(collect([...run(0, ["cubic", "cubic", "bbr"]), ...run(1, ["bbr"], true)]), look);
  expect(lines.map(({ label, look: { colour, dash }, further }) => [label, colour, dash, further])).toEqual([
    ["cubic 1", "orange", 0, false],
    ["cubic 2", "orange", 1, true],
    ["bbr", "blue", 0, false],
    ["bbr (pinned)", "blue", 1, true],
  ]);
});

test("panels have what was measured, and the bound after a drop in that of the RTT", () => {
  const lines = drawn(collect(run(0, ["cubic"])), look);
  const panels = panelsOf(["events", "cwnd", "rtt", "queue", "rwnd"], lines);
  expect(panels.map(({ id, chart }) => [id, chart.series.map((each) => each.label)])).toEqual([
    ["events", [""]],
    ["cwnd", ["cubic"]],
    ["rtt", ["cubic", "bound after the drop"]],
    ["queue", ["cubic"]],
  ]);
  expect(panels[0]!.rows).toEqual(["recovery", "resent", "loss"]);
  expect(panels[1]!.chart.spans).toMatchObject([{ label: "recovery", colour: "orange" }]);
  expect(panels[1]!.symbols!.map(({ shape, t, y }) => [shape, [...t], [...y]])).toEqual([["v", [0.5], [8]]]);
  expect([...panels[2]!.chart.series[1]!.x, ...panels[2]!.chart.series[1]!.y]).toEqual([2, 3, 0.2, 0.2]);
});

test("events are read near the cursor, in rows, and from one to the next", () => {
  const lines = drawn(collect([...run(0, ["cubic"]), ...run(1, ["bbr"])]), look);
  expect(eventText(lines, 0.52, 0.05)).toBe("cubic: 3 × lost, fast_recoveries; bbr: 3 × lost, fast_recoveries");
  expect(eventText(lines, 1, 0.05)).toBe("");
  expect([neighbour(lines, 0, 1), neighbour(lines, 0.5, 1), neighbour(lines, 1.5, 1), neighbour(lines, 1.5, -1), neighbour(lines, 0.5, -1)]).toEqual([
    0.5,
    1.5,
    null,
    0.5,
    null,
  ]);
  expect(eventRows(lines)).toHaveLength(8);
  expect(eventRows(lines)[0]).toEqual([0.5, "cubic", "lost", 3, 8]);
});

test("symbols that have no room are left out, the same ones wherever the stretch begins", () => {
  const t = Float32Array.from({ length: 1000 }, (_, i) => i / 100);
  const all = withRoom(t, [0, 10], 100, 7);
  expect(all.length).toBe(Math.ceil(1000 / 7));
  const within = (places: number[]) => places.filter((place) => t[place]! > 4.1 && t[place]! < 5.9);
  for (const from of [4, 4.003, 4.01, 4.037]) expect(within(withRoom(t, [from, 6], 100, 7))).toEqual(within(all));
  expect(withRoom(t, [4, 4.05], 100 * 200, 7)).toHaveLength(7);
});

test("places follow from the heights, the same for each frame", () => {
  const { areas, height } = arranged([{ height: 100 }, { height: 50 }], 500);
  expect(areas[1]!.top).toBeGreaterThan(areas[0]!.top + 100);
  expect(height).toBeGreaterThan(areas[1]!.top + 50);
  expect(areas[0]!.width).toBe(areas[1]!.width);
});

test("the brush moves its ends and itself inside the whole", () => {
  expect(shifted([2, 4], [0, 10], "both", 3)).toEqual([5, 7]);
  expect(shifted([2, 4], [0, 10], "both", 30)).toEqual([8, 10]);
  expect(shifted([2, 4], [0, 10], "from", -5)).toEqual([0, 4]);
  expect(shifted([2, 4], [0, 10], "to", -5)[1]).toBeGreaterThan(2);
  expect(shifted([2, 4], [0, 10], "to", 99)).toEqual([2, 10]);
});

test("something new comes into the largest gap", () => {
  expect(freePlace([], 10)).toBe(5);
  expect(freePlace([{ kind: "rate", where: "bottleneck", places: [0], at: 5, until: null, values: [] }], 20)).toBe(13);
});

test("scales that fit have what is shown with some room", () => {
  const [events, cwnd] = panelsOf(["cwnd", "events"], drawn(collect(run(0, ["cubic"])), look));
  expect(fitted(cwnd!, [0.9, 1.1])).toEqual([10 - 0.6, 20 + 0.6]);
  expect(fitted(events!, [0, 4])).toBeNull();
});

test("with many lines the cursor reads the main ones alone", () => {
  const blocks = [0, 1, 2].flatMap((number) => run(number, ["cubic"], number > 0));
  for (const block of blocks) if (block.columns.ssthresh) block.columns.ssthresh = floats(5, 5, 5, 5);
  const [panel] = panelsOf(["cwnd"], drawn(collect(blocks), look));
  expect(panel!.chart.series).toHaveLength(6);
  expect(panel!.readings!.map((each) => each.label)).toEqual(["cubic", "cubic (pinned)", "cubic (pinned)"]);
});

test("what the panels show is a table of some rows and a file of all values in base units", () => {
  const panels = panelsOf(["events", "cwnd", "rtt"], drawn(collect(run(0, ["cubic"])), look));
  const { columns, rows } = valueTable(panels, [0, 3]);
  expect(columns.map((each) => each.name)).toEqual(["time", "Congestion window, cubic", "RTT, cubic", "RTT, bound after the drop"]);
  expect([rows.length, rows[0], rows.at(-1)]).toEqual([101, ["0 ms", "10", "50 ms", "–"], ["3 s", "20", "100 ms", "200 ms"]]);
  const all = everyValue(panels);
  expect(all).toHaveLength(4 + 4 + 2);
  expect(all.find((row) => row[2] === "RTT (s)" && row[0] === 2)![3]).toBe(0.1);
});

test("handles that are close stand in rows below each other", () => {
  expect(rowsOf([], 24)).toEqual([]);
  expect(rowsOf([100, 10, 50], 24)).toEqual([0, 0, 0]);
  expect(rowsOf([100, 110, 20, 115, 124], 24)).toEqual([0, 1, 0, 2, 0]);
});

test("thousands of events are shown as how many there are in each stretch", () => {
  const t = Float32Array.from({ length: 4_000 }, (_, i) => i / 400);
  const view = (width: number, xs: [number, number]) => ({ area: { left: 0, top: 0, width, height: 20 }, xs });
  expect(isCrowded(t, view(700, [0, 10]))).toBe(true);
  expect(isCrowded(t, view(700, [4, 4.1]))).toBe(false);
  const counts = counted(t, [0, 10], 70, 7);
  expect(counts).toHaveLength(100);
  expect(counts.reduce((sum, [, count]) => sum + count, 0)).toBe(4_000);
  expect(counts.every(([, count]) => count > 35 && count < 45)).toBe(true);
});

test("recoveries that touch are shaded as one, however many they are", () => {
  const spans = [0, 1, 1.001, 2].map((from) => ({ from, to: from + 0.5, label: "", colour: "red", flow: 0 }));
  const x = (at: number) => 100 * at;
  expect(joined(spans, "red", { x })).toEqual([
    [0, 50],
    [100, expect.closeTo(150.1)],
    [200, 250],
  ]);
  expect(joined(spans, "blue", { x })).toEqual([]);
});
