import { describe, expect, test } from "vitest";
import type { Axis, Chart } from "../../src/charts/description";
import { extent, niceStep, ticks, titleOf, transform, xRange, yRange, zoomed } from "../../src/charts/scales";
import { format, formatInterval, plain, unitOf, written } from "../../src/charts/units";

const axis = (more: Partial<Axis>): Axis => ({ title: "RTT", quantity: "time", ...more });
const LOOK = { colour: "#000", dash: 0, marker: "o" };

describe("numbers", () => {
  test("have three digits, no zeros behind, and a unit", () => {
    expect([38_240_000, 999, 0].map((value) => format(value, "rate"))).toEqual(["38.2 Mbit/s", "999 bit/s", "0 bit/s"]);
    expect([0.05, 0.0000012, 12].map((value) => format(value, "time"))).toEqual(["50 ms", "1.2 µs", "12 s"]);
    expect([format(0.001, "share"), format(1.5, "ratio"), format(0.25, "number"), format(NaN, "rate")]).toEqual(["0.1 %", "×1.5", "0.25", "–"]);
    expect([plain(100), plain(1234), plain(0.00002), plain(-2.5)]).toEqual(["100", "1234", "0.00002", "-2.5"]);
  });
  test("an interval has the unit of its value", () => {
    expect(formatInterval(2e6, 9e5, 3e6, "rate")).toBe("2 Mbit/s [0.9, 3]");
    expect(formatInterval(2e6, NaN, 3e6, "rate")).toBe("2 Mbit/s");
  });
  test("are written as fields take them", () => {
    expect([written("time", 0.0525), written("rate", 42e6), written("share", 0.001), written("size", 65536)]).toEqual([
      "52.5ms",
      "42mbit",
      "0.1%",
      "64KiB",
    ]);
  });
  test("units follow the largest value", () => {
    expect(unitOf("time", 0.0999999999999).name).toBe("ms");
    expect(unitOf("time", 1).name).toBe("s");
    expect(unitOf("time", 0).name).toBe("ms");
  });
});

describe("ticks", () => {
  test("of a linear axis are round in its unit", () => {
    const { ticks: at, unit } = ticks(axis({}), [0, 0.2], 5);
    expect(at.map((tick) => tick.text)).toEqual(["0", "50", "100", "150", "200"]);
    expect(titleOf(axis({}), unit)).toBe("RTT (ms)");
  });
  test("of a logarithmic axis are 1, 2, 5, and only powers of ten on a long one", () => {
    expect(ticks(axis({ scale: "log" }), [0.01, 0.1], 8).ticks.map((tick) => tick.text)).toEqual(["10", "20", "50", "100"]);
    const long = ticks(axis({ scale: "log" }), [1e-4, 10], 8);
    expect(long.ticks.map((tick) => tick.text)).toEqual(["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
    expect(long.unit).toBeNull();
    expect(ticks(axis({ scale: "log" }), [1e-4, 10], 3).ticks.length).toBeLessThanOrEqual(3);
  });
  test("of a short stretch of a logarithmic axis are linear", () => {
    expect(ticks(axis({ scale: "log" }), [0.05, 0.06], 5).ticks.length).toBeGreaterThan(2);
  });
  test("of an axis with room for 0 begin there", () => {
    expect(ticks(axis({ scale: "asinh", knee: 0.001 }), [0, 0.1], 8).ticks.map((tick) => tick.text)).toEqual([
      "0",
      "1",
      "2",
      "5",
      "10",
      "20",
      "50",
      "100",
    ]);
  });
  test("steps are 1, 2 or 5", () => {
    expect([niceStep(10, 5), niceStep(7, 3), niceStep(0.3, 4), niceStep(0, 4)]).toEqual([2, 5, 0.1, 1]);
  });
});

describe("ranges", () => {
  const chart = (y: Partial<Axis>, values: number[]): Chart => ({
    title: "",
    x: axis({}),
    y: axis({ quantity: "rate", ...y }),
    series: [{ label: "a", look: LOOK, x: values.map((_, i) => i), y: values }],
  });
  test("of y begin at 0 and stay while values come in", () => {
    expect(yRange(chart({}, [10, 41]))).toEqual(yRange(chart({}, [10, 40, 42])));
    expect(yRange(chart({}, [10, 41]))[0]).toBe(0);
    expect(yRange(chart({}, [10, 41]))[1]).toBeGreaterThan(41);
    expect(yRange(chart({}, []))).toEqual([0, 1]);
  });
  test("of y are not blown up by the intervals of very few runs", () => {
    const wide = chart({}, [10, 40]);
    const [one] = wide.series;
    const [, to] = yRange({ ...wide, series: [{ ...one!, low: [-900, 30], high: [900, 50] }] });
    expect([to > 50, to < 65]).toEqual([true, true]);
  });
  test("of a logarithmic y leave out what it cannot show", () => {
    const [from, to] = yRange(chart({ scale: "log" }, [0, 1, 100]));
    expect(from).toBeGreaterThan(0.5);
    expect(to).toBeGreaterThan(100);
  });
  test("of one value have a length", () => {
    expect(xRange(chart({}, [3]))).toEqual([-0.5, 0.5]);
    expect(extent([[NaN, Infinity]])).toBeNull();
  });
  test("zoom around a value, never beyond the whole", () => {
    expect(zoomed(axis({}), [0, 10], [0, 10], 0.5, 5)).toEqual([2.5, 7.5]);
    expect(zoomed(axis({}), [2.5, 7.5], [0, 10], 4, 5)).toEqual([0, 10]);
    expect(zoomed(axis({}), [0, 5], [0, 10], 1, NaN, -1)).toEqual([0, 5]);
    expect(zoomed(axis({}), [0, 5], [0, 10], 1, NaN, 3)).toEqual([5, 10]);
    const [from, to] = zoomed(axis({ scale: "log" }), [1, 100], [1, 100], 0.5, 10);
    expect([from, to].map((value) => Math.log10(value))).toEqual([expect.closeTo(0.5), expect.closeTo(1.5)]);
  });
  test("transforms go there and back", () => {
    for (const scale of ["linear", "log", "asinh"] as const) {
      const { to, from } = transform(axis({ scale, knee: 0.01 }));
      expect(from(to(0.037))).toBeCloseTo(0.037);
    }
  });
});
