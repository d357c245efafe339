import { describe, expect, test } from "vitest";
import { chartAxis, hereOn, place, words } from "../../src/axes/axes";
import { subject, whole } from "../../src/curves/asking";
import { chartOf, gapped, withAll } from "../../src/curves/chart";
import { gather } from "../../src/curves/gather";
import { type AxisDocument, METRICS, type State } from "../../src/server/contract";
import type { Block } from "../../src/server/blocks";
import { block } from "../blocks";

const axis = (more: Partial<AxisDocument> = {}): AxisDocument => ({
  axis: "rtt",
  title: "RTT",
  quantity: "time",
  log: true,
  here: 0.05,
  text: "50ms",
  note: "",
  words: ["10ms", "50ms", "200ms"],
  ...more,
});
const X = [0.01, 0.05, 0.2];
type Own = Block<"curve">;
const headOf = (controls: string[]) => block<Own>("axis", { ...axis(), controls }, { x: X });
const point = (place: number, control: number, n: number, goodput: number, end = 1e6) =>
  block<Own>(
    "points",
    {},
    { place: [place], control: [control], n: [n], goodput: [goodput], "goodput.low": [goodput - end], "goodput.high": [goodput + end] },
  );
const LOOK = { colour: "#000", dash: 0, marker: "o" };
const SHOWN = { bands: true, runs: true, log: false };

describe("blocks", () => {
  test("say nothing before the axis", () => {
    expect(gather([])).toBeNull();
  });
  test("become lines along the axis, whatever order they come in; a later row replaces an earlier one", () => {
    const curve = gather([headOf(["cubic", "bbr"]), point(2, 0, 1, 3e6), point(0, 0, 1, 9e6), point(2, 0, 5, 4e6), point(0, 1, 2, 1e6)]);
    const line = curve?.lines[0]?.get("goodput");
    expect([line?.x, line?.y, line?.n]).toEqual([
      [0.01, 0.2],
      [9e6, 4e6],
      [1, 5],
    ]);
    expect([curve?.least, curve?.most, curve?.complete]).toEqual([1, 5, 1]);
  });
  test("are joined where neighbours have run, with a gap where a place between them has not", () => {
    const some = gather([headOf(["cubic"]), point(0, 0, 5, 9e6), point(2, 0, 5, 3e6)]);
    const line = gapped(some?.lines[0]?.get("goodput"));
    expect([line.y, line.n, line.place]).toEqual([
      [9e6, NaN, 3e6],
      [5, NaN, 5],
      [0, 1, 2],
    ]);
    expect(gapped(undefined).y).toEqual([]);
    const all = gather([headOf(["cubic"]), point(0, 0, 5, 9e6), point(1, 0, 5, 4e6), point(2, 0, 5, 3e6)]);
    expect(gapped(all?.lines[0]?.get("goodput")).y).toEqual([9e6, 4e6, 3e6]);
  });
  test("an end that is not bounded has no place in a band", () => {
    const line = gather([headOf(["cubic"]), point(0, 0, 2, 5e6, Infinity)])?.lines[0]?.get("goodput");
    expect([line?.low, line?.high]).toEqual([[NaN], [NaN]]);
  });
  test("single runs become the strip of their control", () => {
    const runs = block<Own>("runs", {}, { place: [0, 0, 1], control: [0, 1, 0], seed: [0, 0, 0], goodput: [1, 2, 3] });
    const curve = gather([headOf(["cubic", "bbr"]), point(0, 0, 1, 1), runs]);
    expect(curve?.lines[0]?.get("goodput")?.strip).toEqual({ x: [0.01, 0.05], y: [1, 3] });
  });
});

test("a chart has the whole axis from its first point on, and the curve before behind it", () => {
  const curve = gather([headOf(["cubic"]), point(1, 0, 1, 5e6)])!;
  const before = gather([headOf(["cubic"]), ...[0, 1, 2].map((at) => point(at, 0, 9, 8e6))]);
  const chart = chartOf(curve, before, METRICS[0], () => LOOK, SHOWN, []);
  expect([chart.x.from, chart.x.to, chart.x.scale]).toEqual([0.01, 0.2, "log"]);
  expect([chart.series[0]?.x, chart.before?.[0]?.x]).toEqual([[0.05], X]);
  expect(chartOf(curve, null, METRICS[0], () => LOOK, { ...SHOWN, bands: false }, []).series[0]?.low).toBeUndefined();
});

test("a point has a band from five runs on", () => {
  const curve = gather([headOf(["cubic"]), point(0, 0, 4, 5e6), point(1, 0, 5, 5e6)])!;
  const chart = chartOf(curve, null, METRICS[0], () => LOOK, SHOWN, []);
  expect(chart.series[0]?.low).toEqual([NaN, 4e6]);
  expect(withAll(chart, curve, METRICS[0]).series[0]?.low).toEqual([4e6, 4e6]);
});

describe("places", () => {
  test("of texts are in base units", () => {
    expect(place(axis(), "80ms")).toBeCloseTo(0.08);
    expect(place(axis({ axis: "loss", quantity: "share" }), "0.1%")).toBeCloseTo(0.001);
    expect(place(axis({ axis: "buffer", quantity: "number" }), "2bdp")).toBe(2);
    expect(place(axis({ axis: "buffer", quantity: "number" }), "64KiB")).toBeNull();
    expect(place(axis({ axis: "rate", quantity: "rate" }), "10mbit")).toBe(1e7);
  });
  test("of the state are the server's where its text is still the same", () => {
    expect(hereOn(axis({ here: 1, text: "1bdp" }), "", "")).toBe(1);
    expect(hereOn(axis(), "50ms", "80ms")).toBeCloseTo(0.08);
    expect(hereOn(axis(), "50ms", "")).toBeNull();
  });
  test("become the level's own text where they are one, otherwise a text that fields take", () => {
    expect(words(axis(), X, 0.0503)).toBe("50ms");
    expect(words(axis(), X, 0.0515)).toBe("51.5ms");
    expect(words(axis(), X, 0.03)).toBe("30ms");
    expect(words(axis({ axis: "buffer", quantity: "number", words: ["0.1bdp", "1bdp"] }), [0.1, 1], 0.5)).toBe("0.5bdp");
    expect(words(axis({ axis: "loss", quantity: "share", words: ["0%", "1%"] }), [0, 0.01], 0.004)).toBe("0.4%");
  });
  test("on an axis with a level 0 have room for it", () => {
    expect(chartAxis(axis({ axis: "loss", title: "loss", quantity: "share" }), [0, 0.001, 0.1])).toEqual({
      title: "Loss",
      quantity: "share",
      scale: "asinh",
      knee: 0.001,
    });
    expect(chartAxis(axis({ log: false }), [0, 1]).scale).toBe("linear");
  });
});

test("what an answer is about does not change along its own axes", () => {
  const state = { rtt: "50ms", jitter: "", loss: "0.1%" } as unknown as State;
  expect(subject({ ...state, rtt: "80ms" }, ["rtt"], {})).toBe(subject(state, ["rtt"], {}));
  expect(subject({ ...state, loss: "1%" }, ["rtt"], {})).not.toBe(subject(state, ["rtt"], {}));
  expect(subject(state, ["rtt"], { seeds: 5 })).not.toBe(subject(state, ["rtt"], { seeds: 10 }));
});

test("what is no whole number goes to the server as it is", () => {
  expect([whole("20"), whole("abc"), whole("1.5"), whole(""), whole("99999999999")]).toEqual([20, "abc", "1.5", "", "99999999999"]);
});
