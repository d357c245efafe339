import { describe, expect, test } from "vitest";
import type { Axis } from "../../src/charts/description";
import { band, dense, envelope, lowerBound, marked, nearest, trace, View, visible } from "../../src/charts/lines";
import { transform } from "../../src/charts/scales";

const AREA = { left: 10, top: 20, width: 100, height: 50 };
const linear = transform({ title: "", quantity: "number" } as Axis);
const view = (from: number, to: number, top = 1) => new View(AREA, [from, to], [0, top], linear, linear);

describe("places", () => {
  test("the first value that is not below, and the nearest", () => {
    const x = [1, 2, 4, 8];
    expect([0, 1, 3, 8, 9].map((value) => lowerBound(x, value))).toEqual([0, 0, 2, 3, 4]);
    expect([0, 2.9, 3.1, 99].map((value) => nearest(x, value))).toEqual([0, 1, 2, 3]);
    expect(nearest([], 1)).toBe(-1);
  });
  test("one place more on each side of what is shown", () => {
    expect(visible([0, 1, 2, 3, 4, 5], [2, 3])).toEqual([1, 5]);
    expect(visible([0, 1, 2, 3, 4, 5], [2.5, 2.6])).toEqual([2, 4]);
    expect(visible([0, 1], [5, 6])).toEqual([1, 2]);
  });
});

describe("a line", () => {
  test("of few values is drawn value by value; a gap stays a gap", () => {
    expect([...trace([0, 5, 10], [0, NaN, 1], view(0, 10))]).toEqual([10, 70, 60, NaN, 110, 20]);
  });
  test("of steps goes right before it goes up", () => {
    expect([...trace([0, 10], [0, 1], view(0, 10), true)]).toEqual([10, 70, 110, 70, 110, 20]);
  });
});

describe("a dense line", () => {
  const x = Float64Array.from({ length: 200_000 }, (_, i) => i);
  test("is one only where a column has several values", () => {
    expect([dense(x, view(0, 199_999)), dense(x, view(500, 800)), dense([], view(0, 1))]).toEqual([true, false, false]);
  });
  test("covers every column's least and largest value, in at most four points a column", () => {
    const y = Float64Array.from(x, (_, i) => (i === 123_456 ? 1 : i === 77_777 ? 0 : 0.5 + 0.1 * Math.sin(i)));
    const [piece, ...others] = envelope(x, y, view(0, 199_999), 0);
    const points = [...(piece ?? [])];
    expect(others).toEqual([]);
    expect(points.length / 2).toBeLessThanOrEqual(4 * AREA.width + 8);
    const ys = points.filter((_, i) => i % 2 === 1);
    expect([Math.min(...ys), Math.max(...ys)]).toEqual([20, 70]);
    expect(points[2 * ys.indexOf(20)]).toBe(Math.floor(10 + (123_456 / 199_999) * 100));
  });
  test("has columns that touch, however steep it is", () => {
    const y = Float64Array.from(x, (_, i) => (i < 100_000 ? 0 : 1));
    const [piece] = envelope(x, y, view(0, 199_999), 2);
    const column = (at: number) => {
      const ys = [...(piece ?? [])].flatMap((value, i, all) => (i % 2 && all[i - 1] === at ? [value] : []));
      return [Math.min(...ys), Math.max(...ys)];
    };
    expect(column(30)).toEqual([69, 71]);
    expect(column(60)).toEqual([19, 71]);
  });
  test("that is dashed is left out in its gaps, and its dashes move with what is shown", () => {
    const y = Float64Array.from(x, () => 0.5);
    const columns = (from: number) => envelope(x, y, view(from, from + 100_000), 2, [9, 4]).map((piece) => [...piece].filter((_, i) => i % 2 === 0));
    const begins = (from: number) =>
      columns(from)
        .map((xs) => Math.min(...xs))
        .slice(1, -1);
    const lengths = columns(0)
      .slice(1, -1)
      .map((xs) => Math.max(...xs) - Math.min(...xs));
    expect([lengths.length, new Set(lengths)]).toEqual([6, new Set([9])]);
    expect(begins(0)).toEqual(
      expect.arrayContaining(
        begins(5_000)
          .map((each) => each + 5)
          .slice(0, 5),
      ),
    );
    expect(begins(0)).not.toEqual(expect.arrayContaining(begins(5_000).slice(0, 5)));
    expect(envelope(x, y, view(0, 100_000), 2, [])).toHaveLength(1);
  });
  test("leaves the area at both sides and ends at a gap", () => {
    const y = Float64Array.from(x, (_, i) => (i > 60_000 && i < 120_000 ? NaN : 0.5));
    expect(envelope(x, y, view(0, 199_999), 1)).toHaveLength(2);
    const [piece] = envelope(x, x, view(10_000.5, 90_000.5), 1);
    expect(Math.min(...[...(piece ?? [])].filter((_, i) => i % 2 === 0))).toBeLessThan(AREA.left);
    expect(Math.max(...[...(piece ?? [])].filter((_, i) => i % 2 === 0))).toBeGreaterThan(AREA.left + AREA.width);
  });
});

describe("a band", () => {
  test("is one polygon for each piece without gaps, the upper edge first", () => {
    expect(band([0, 10], [0, 0], [1, 1], view(0, 10))).toEqual([[10, 20, 110, 20, 110, 70, 10, 70]]);
    expect(band([0, 1, 2, 3, 4], [0, 0, NaN, 0, 0], [1, 1, NaN, 1, 1], view(0, 4))).toHaveLength(2);
    expect(band([0], [0], [1], view(0, 4))).toHaveLength(0);
  });
  test("of many values covers every one of them", () => {
    const x = Float64Array.from({ length: 50_000 }, (_, i) => i);
    const low = Float64Array.from(x, (_, i) => (i === 20_001 ? 0 : 0.4));
    const high = Float64Array.from(x, (_, i) => (i === 30_003 ? 1 : 0.6));
    const [piece] = band(x, low, high, view(0, 49_999));
    expect(piece?.length).toBeLessThan(4 * AREA.width + 20);
    expect(Math.max(...(piece ?? []))).toBeGreaterThanOrEqual(70);
    expect(piece).toContain(20);
  });
});

test("markers stand at every value where there is room, otherwise here and there", () => {
  expect(marked([0, 5, 10], view(0, 10))).toEqual([0, 1, 2]);
  const many = Array.from({ length: 50 }, (_, i) => i);
  expect(marked(many, view(0, 49))).toEqual([26]);
  expect(marked(many, view(0, 49), 1)).not.toEqual([26]);
  expect(marked(many, view(10, 14))).toEqual([9, 10, 11, 12, 13, 14, 15]);
});

test("logarithmic axes go there and back", () => {
  const log = transform({ title: "", quantity: "time", scale: "log" });
  const both = new View(AREA, [0.001, 1], [0, 1], log, linear);
  expect(both.x(0.001)).toBeCloseTo(10);
  expect(both.x(1)).toBeCloseTo(110);
  expect(both.xAt(both.x(0.03))).toBeCloseTo(0.03);
});
