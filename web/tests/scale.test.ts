import { expect, test } from "vitest";
import { read, written } from "../src/charts/units";
import { logScale } from "../src/ui/scale";

test("a slider's steps are texts that stand at the same step", () => {
  for (const scale of [
    logScale({ kind: "time", low: "1ms", high: "1s" }),
    logScale({ kind: "time", low: "0.1ms", high: "200ms", zero: "" }),
    logScale({ kind: "rate", low: "500kbit", high: "1gbit", zero: "", zeroLast: true }),
    logScale({ kind: "byterate", low: "100kB/s", high: "100MB/s", zero: "", zeroLast: true }),
    logScale({ kind: "share", low: "0.01%", high: "20%", zero: "" }),
    logScale({ kind: "buffer", low: "0.1bdp", high: "20bdp", standard: "1bdp" }),
  ])
    for (let step = 0; step <= scale.last; step++) expect(Math.abs((scale.step(scale.text(step)) ?? -9) - step)).toBeLessThanOrEqual(1);
});

test("an empty text stands at its end of the slider, or at what it stands for", () => {
  expect(logScale({ kind: "time", low: "0.1ms", high: "200ms", zero: "" }).step("")).toBe(0);
  const rate = logScale({ kind: "rate", low: "500kbit", high: "1gbit", zero: "", zeroLast: true });
  expect(rate.step("")).toBe(rate.last);
  const buffer = logScale({ kind: "buffer", low: "0.1bdp", high: "20bdp", standard: "1bdp" });
  expect(buffer.step("")).toBe(buffer.step("1bdp"));
  expect(buffer.step("64KiB")).toBeNull();
});

test("quantities are read as people write them", () => {
  expect(read("time", "1.5 s")).toBe(1.5);
  expect(read("rate", "10Mbit")).toBe(1e7);
  expect(read("rate", "10mB/s")).toBe(8e7);
  expect(read("share", "0.1%")).toBeCloseTo(0.001);
  for (const text of ["", "ms", "1e", "-3ms", "5 parsecs", "1,5ms", "NaN"]) expect(read("time", text)).toBeNull();
  expect(written("time", 0.25e-3)).toBe("250us");
  expect(written("rate", 42e6)).toBe("42mbit");
});

test("a unit that every object has by itself is none", () => {
  expect([read("time", "5constructor"), read("rate", "1toString"), read("size", "1__proto__")]).toEqual([null, null, null]);
});
