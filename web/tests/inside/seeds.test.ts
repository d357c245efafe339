import { expect, test } from "vitest";
import { keepWithin, link } from "../../src/charts/links";
import { seedOf } from "../../src/inside/seeds";

test("an address that names no seed means the first one", () => {
  expect(["7", "", "-1", "1.5", "1e9", "abc", "9".repeat(20), "__proto__"].map(seedOf)).toEqual([7, 0, 0, 0, 0, 0, 0, 0]);
});

test("a stretch of a longer run is not kept for a shorter one", () => {
  const time = link("seeds.test");
  time.range.value = [2, 8];
  keepWithin(time, [0, 10]);
  expect(time.range.value).toEqual([2, 8]);
  time.range.value = [-1e-12, 10 + 1e-12];
  keepWithin(time, [0, 10]);
  expect(time.range.value).not.toBeNull();
  keepWithin(time, [0, 5]);
  expect(time.range.value).toBeNull();
});
