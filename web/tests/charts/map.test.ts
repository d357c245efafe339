import { describe, expect, test } from "vitest";
import type { Theme } from "../../src/charts/draw";
import { svgOf } from "../../src/charts/save";
import { apart, css, lab, placeOn, plainScale, ratioScale } from "../../src/map/colour";
import { cellAt, drawMap, edges, hatches, layout, picture, valueText } from "../../src/map/draw";
import { gather, type Grid, isoline, levels, undecided } from "../../src/map/grid";
import { moved, sentence } from "../../src/map/cursor";
import type { Block } from "../../src/server/blocks";
import { block } from "../blocks";

const LIGHT: Theme = { ground: "#ffffff", ink: "#1d2125", soft: "#56616b", line: "#d5dade" };
const DARK: Theme = { ground: "#14171a", ink: "#e4e7ea", soft: "#a2abb4", line: "#363d44" };
const [CUBIC, BBR] = ["#d68000", "#009ede"];
const colour = (label: string) => (label === "cubic" ? CUBIC : BBR);

type Own = Block<"map">;
const axis = (name: string, log: boolean) => ({ axis: name, title: name, quantity: "time", log, here: 0.01, text: "10ms", note: "", words: [] });
const SIDE = 10;
const head = (quantity = "ratio") =>
  block<Own>(
    "grid",
    { x: axis("jitter", false), y: axis("rtt", true), quantity, text: "what a cell is", first: "cubic", second: "bbr" },
    {
      x: Array.from({ length: SIDE }, (_, i) => i * 0.002),
      y: Array.from({ length: SIDE }, (_, i) => 0.01 * 30 ** (i / (SIDE - 1))),
    },
  );
const cells = (rows: [number, number, number, number, number?][]) =>
  block<Own>(
    "cells",
    {},
    {
      i: rows.map((row) => row[0]),
      j: rows.map((row) => row[1]),
      span: rows.map((row) => row[2]),
      value: rows.map((row) => row[3]),
      low: rows.map((row) => row[3] * 0.8),
      high: rows.map((row) => row[3] * 1.2),
      n: rows.map((row) => row[4] ?? 5),
    },
  );
/** Every cell, with a ratio that falls from 4 to 1/4 along x. */
const slope = (factor = (i: number) => 4 ** (1 - (2 * i) / (SIDE - 1))) =>
  gather([head(), cells(Array.from({ length: SIDE ** 2 }, (_, at) => [at % SIDE, Math.floor(at / SIDE), 1, factor(at % SIDE)]))]) as Grid;

describe("a grid", () => {
  test("is nothing before its axes are known, and shows nothing before a cell has run", () => {
    expect(gather([])).toBeNull();
    const grid = gather([head()]) as Grid;
    expect([grid.known, grid.shown.every(Number.isNaN)]).toEqual([0, true]);
  });
  test("shows a coarse cell's value around it until those beside it have run, to the grid's very edge", () => {
    const grid = gather([
      head(),
      cells([
        [2, 2, 5, 2],
        [7, 2, 5, 3],
        [2, 7, 5, 4],
        [7, 7, 5, 5],
      ]),
    ]) as Grid;
    expect(grid.known).toBe(4);
    expect([grid.shown[0], grid.shown[9], grid.shown[90], grid.shown[99]]).toEqual([2, 3, 4, 5]);
    expect(grid.value[0]).toBeNaN();
    const finer = gather([head(), cells([[2, 2, 5, 2]]), cells([[0, 0, 1, 9]])]) as Grid;
    expect([finer.shown[0], finer.shown[1], finer.known]).toEqual([9, 2, 2]);
  });
  test("takes the newest row of a cell, and none outside", () => {
    const grid = gather([
      head(),
      cells([
        [0, 0, 1, 1, 1],
        [99, 0, 1, 7],
      ]),
      cells([[0, 0, 1, 2, 5]]),
    ]) as Grid;
    expect([grid.value[0], grid.n[0], grid.known]).toEqual([2, 5, 1]);
  });
  test("a refined cell keeps its value where a coarse one beside it is told anew", () => {
    const grid = gather([
      head(),
      cells([
        [1, 1, 1, 9],
        [2, 2, 5, 2],
      ]),
    ]) as Grid;
    expect(grid.shown[11]).toBe(9);
  });
  test("leaves open what its interval leaves open", () => {
    const grid = gather([
      head(),
      cells([
        [0, 0, 1, 1.1],
        [1, 0, 1, 2],
      ]),
    ]) as Grid;
    expect([undecided(grid, 0), undecided(grid, 1), undecided(grid, 2)]).toEqual([true, false, false]);
    const other = gather([head("cv"), cells([[0, 0, 1, 1.1]])]) as Grid;
    expect(undecided(other, 0)).toBe(false);
  });
});

describe("lines", () => {
  test("run where the value is the level, from edge to edge", () => {
    const [line, ...others] = isoline(slope(), 1);
    expect(others).toEqual([]);
    expect(line?.every(([x]) => Math.abs(x - SIDE / 2) < 0.2)).toBe(true);
    const ys = (line ?? []).map(([, y]) => y);
    expect([Math.min(...ys), Math.max(...ys)]).toEqual([0, SIDE]);
  });
  test("are none before every cell shows something, and none on flat ground", () => {
    expect(isoline(gather([head(), cells([[2, 2, 5, 2]])]) as Grid, 1)).toEqual([]);
    expect(
      isoline(
        slope((i) => (i % 2 ? 1.01 : 0.99)),
        1,
      ),
    ).toEqual([]);
  });
  test("follow what matters: equal, half left, or the middle of what there is", () => {
    expect(levels(slope())[0]).toBe(1);
    expect(levels(gather([head("retention")]) as Grid)[0]).toBe(0.5);
    expect(levels(gather([head("cv"), cells(Array.from({ length: 20 }, (_, i) => [i % SIDE, Math.floor(i / SIDE), 1, i / 10]))]) as Grid)[0]).toBe(1);
    expect(levels(gather([head("cv")]) as Grid)).toEqual([]);
  });
});

describe("colours", () => {
  test("go to OKLab and back", () => {
    for (const hex of ["#d68000", "#009ede", "#000000", "#ffffff", "#3b496c"]) expect(css(lab(hex))).toBe(hex);
  });
  test("of a ratio have each control's hue on its side, and lightness that only falls or only rises away from 1", () => {
    for (const theme of [LIGHT, DARK]) {
      const scale = ratioScale(CUBIC as string, BBR as string, theme);
      const light = [0.5, 0.6, 0.7, 0.8, 0.9, 1].map((place) => [lab(scale.share(place))[0], lab(scale.share(1 - place))[0]] as const);
      const sign = theme === LIGHT ? -1 : 1;
      for (let i = 1; i < light.length; i += 1)
        for (const side of [0, 1] as const) expect(sign * ((light[i]?.[side] ?? 0) - (light[i - 1]?.[side] ?? 0))).toBeGreaterThan(0);
      expect(lab(scale.at(3))[2]).toBeGreaterThan(0.05);
      expect(lab(scale.at(1 / 3))[2]).toBeLessThan(-0.05);
      expect([scale.at(1000), scale.at(0)]).toEqual([scale.at(4), scale.at(1 / 4)]);
    }
  });
  test("of two controls with one hue are another pair", () => {
    const scale = ratioScale(CUBIC as string, CUBIC as string, LIGHT);
    expect(scale.at(4)).not.toBe(scale.at(1 / 4));
  });
  test("of other quantities become brighter with the value", () => {
    const scale = plainScale("goodput", [1e6, 37e6, NaN]);
    expect([scale.from, scale.to]).toEqual([0, 40e6]);
    const light = [0, 0.2, 0.4, 0.6, 0.8, 1].map((place) => lab(scale.share(place))[0]);
    expect([...light].sort((one, other) => one - other)).toEqual(light);
    expect(placeOn(plainScale("retention", []), 0.25)).toBe(0.25);
  });
});

describe("a picture", () => {
  test("has cells whose edges lie between their centres", () => {
    const line = { to: (value: number) => value, from: (place: number) => place };
    expect(edges([0, 2, 4], line)).toEqual([-1, 1, 3, 5]);
    expect(edges([10, 100, 1000], { to: Math.log10, from: (place) => 10 ** place }).map(Math.round)).toEqual([3, 32, 316, 3162]);
  });
  test("knows the cell under a pixel", () => {
    const image = picture(slope(), colour, LIGHT);
    const place = layout(image, 900, 660);
    const { left, top, width, height } = place.area;
    expect(cellAt(place, left + 1, top + height - 1)).toBe(0);
    expect(cellAt(place, left + width - 1, top + 1)).toBe(SIDE ** 2 - 1);
    expect([cellAt(place, left - 1, top + 5), cellAt(place, left + 5, top + height + 1)]).toEqual([-1, -1]);
  });
  test("as SVG has the legend's numbers, the level's name, and where the sliders are", () => {
    const image = picture(slope(), colour, LIGHT);
    const svg = svgOf(
      "map",
      (pen, width, height, theme) => drawMap(pen, image, { here: { x: 0.01, y: 0.05 }, cell: -1 }, width, height, theme),
      LIGHT,
      { width: 900, height: 660 },
    );
    for (const text of ["1/4", "4 ×", "equal", "you are here", "← bbr carries more", "cubic carries more →", "interval has 1 in it"])
      expect(svg).toContain(`>${text}<`);
    const other = image.lines.find(({ level, lines }) => level !== 1 && lines.some((piece) => piece.length >= 3));
    expect(svg.split(`${other?.level} ×<`).length - 1, "on the map and in the legend").toBe(2);
    expect(svg).not.toContain("not measured yet");
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });
  test("hatches run on from cell to cell", () => {
    const strokes = [...hatches([0, 0, 20, 0, 20, 20, 0, 20]), ...hatches([20, 0, 40, 0, 40, 20, 20, 20])].filter(Number.isFinite);
    for (let i = 0; i < strokes.length; i += 2) expect(((strokes[i] as number) + (strokes[i + 1] as number)) % 7).toBe(0);
  });
  test("says values with their units", () => {
    expect([valueText({ quantity: "ratio" }, 2.345), valueText({ quantity: "retention" }, 0.5), valueText({ quantity: "rtt" }, 0.05)]).toEqual([
      "2.35 ×",
      "50 %",
      "50 ms",
    ]);
    expect(valueText({ quantity: "ratio" }, NaN)).toBe("–");
  });
});

test("keys move the cell, begin where the sliders are, and stop at the edges", () => {
  const grid = slope();
  expect(moved(grid, -1, "ArrowRight", { x: 0.0081, y: 0.01 })).toBe(4);
  expect([moved(grid, 4, "ArrowRight", null), moved(grid, 4, "ArrowUp", null), moved(grid, 4, "ArrowDown", null)]).toEqual([5, 14, 4]);
  expect([moved(grid, 14, "Home", null), moved(grid, 14, "End", null), moved(grid, 4, "q", null)]).toEqual([10, 19, -1]);
});

test("a cell says its value with interval and runs, in one unit, and what is open", () => {
  const grid = gather([
    head(),
    cells([
      [0, 0, 1, 1.1],
      [1, 0, 1, 2, 1],
    ]),
  ]) as Grid;
  expect(sentence(grid, 0)).toBe(
    "jitter 0 ms, rtt 10 ms: cubic carries 1.1 × bbr [0.88, 1.32], 5 runs of each; undecided, the interval has 1 in it.",
  );
  expect(sentence(grid, 1)).toBe("jitter 2 ms, rtt 10 ms: cubic carries 2 × bbr [1.6, 2.4], 1 run of each.");
  expect(sentence(grid, 2)).toBe("jitter 4 ms, rtt 10 ms: not measured yet.");
  const share = gather([head("retention"), cells([[0, 0, 1, 0.5]])]) as Grid;
  expect(sentence(share, 0)).toBe("jitter 0 ms, rtt 10 ms: 50 % of the goodput of cubic is left [40, 60], 5 runs.");
});

test("both sides of a ratio are told apart from each other and from equal by eyes of every kind, for every pair of hues of the figures", () => {
  const hues = ["#d68000", "#009ede", "#1a7152", "#674dce", "#c280a2", "#b23b16"];
  const pairs = hues.flatMap((one, i) => hues.slice(i).map((other) => [one, other] as const));
  for (const theme of [LIGHT, DARK]) {
    for (const [one, other] of pairs) {
      const [high, equal, low] = [2.5, 1, 1 / 2.5].map((value) => ratioScale(one, other, theme).at(value)) as [string, string, string];
      expect([one, other, Math.min(apart(high, low), apart(high, equal), apart(low, equal)) > 0.1]).toEqual([one, other, true]);
    }
  }
});

test("eyes that lack a cone see less, and a hue that is nearer keeps its side", () => {
  expect(apart("#1a7152", "#b23b16")).toBeLessThan(0.12);
  expect(apart("#d68000", "#009ede")).toBeGreaterThan(0.2);
  const scale = ratioScale(BBR as string, "#c280a2", LIGHT);
  expect(lab(scale.at(4))[2]).toBeLessThan(0);
});
