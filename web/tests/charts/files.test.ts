import { expect, test } from "vitest";
import type { Chart } from "../../src/charts/description";
import { escaped } from "../../src/charts/pen";
import { csvOf, figure, rowsOf, svgOf } from "../../src/charts/save";
import { read, sentence, step } from "../../src/charts/reading";

const THEME = { ground: "#fff", ink: "#000", soft: "#555", line: "#ddd" };
const HOSTILE = '<script>alert(1)</script>"&\u0000';
const chart: Chart = {
  title: `Goodput ${HOSTILE}`,
  x: { title: "RTT", quantity: "time" },
  y: { title: "Goodput", quantity: "rate" },
  series: [
    {
      label: "cubic",
      look: { colour: "#d68000", dash: 0, marker: "o" },
      x: [0.01, 0.1],
      y: [4e6, 2e6],
      low: [3e6, 1e6],
      high: [5e6, 3e6],
      markers: true,
      n: [5, 5],
    },
    { label: HOSTILE, look: { colour: "#009ede", dash: 1, marker: "s" }, x: [0.01, 0.1], y: [1e6, NaN] },
  ],
  marks: [{ id: "here", at: 0.05, label: "you are here", kind: "here" }],
};

test("an SVG has each line, its dashes and its legend, and every text escaped", () => {
  const svg = svgOf(chart.title, figure(chart), THEME);
  expect(svg).not.toContain("<script");
  expect(svg).toContain("&lt;script&gt;");
  expect(svg).toContain("you are here");
  expect(svg).toContain('stroke-dasharray="9 4"');
  expect(svg).toContain("Goodput (Mbit/s)");
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  expect(svg.match(/<(g|svg|clipPath|text|title)[ >]/g)?.length).toBe(svg.match(/<\/(g|svg|clipPath|text|title)>/g)?.length);
  expect(escaped("\u0000\ud800")).toBe("\ufffd\ufffd");
});

test("a CSV quotes what needs it, and no cell is a formula", () => {
  expect(
    csvOf(
      ["a", "b"],
      [
        ["x,y", 1.5],
        ['say "no"', NaN],
        ["=1+1", -2],
      ],
    ),
  ).toBe('a,b\r\n"x,y",1.5\r\n"say ""no""",\r\n\'=1+1,-2\r\n');
  const { columns, rows } = rowsOf(chart);
  expect(columns).toEqual(["series", "RTT (s)", "Goodput (bit/s)", "low", "high", "runs"]);
  expect(rows[1]).toEqual(["cubic", 0.1, 2e6, 1e6, 3e6, 5]);
});

test("the cursor reads the nearest value of each line", () => {
  const reading = read(chart, 0.09);
  expect(reading.values.map((value) => value.text)).toEqual(["2 Mbit/s [1, 3]", "–"]);
  expect(sentence({ ...chart, series: chart.series.slice(0, 1) }, read({ ...chart, series: chart.series.slice(0, 1) }, 0.1))).toBe(
    "RTT 100 ms: cubic 2 Mbit/s [1, 3].",
  );
});

test("the cursor steps from value to value and stays at the ends", () => {
  const series = { ...chart.series[0]!, x: [1, 2, 3], y: [1, 1, 1] };
  const pixel = (value: number) => value * 100;
  expect(step(series, null, 1, [1, 3], pixel)).toBe(1);
  expect(step(series, 1, 1, [1, 3], pixel)).toBe(2);
  expect(step(series, 3, 1, [1, 3], pixel)).toBe(3);
  expect(step(series, 1, -1, [1, 3], pixel)).toBe(1);
});
