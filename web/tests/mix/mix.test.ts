import { expect, test } from "vitest";
import { members, panelsOf, type Sharing, stacked } from "../../src/mix/data";
import { together } from "../../src/mix/groups";
import { group, parse, write } from "../../src/mix/grammar";

test("a mixture taken apart is the same mixture again", () => {
  const same = [
    "cubic*2,bbr@5s-8s",
    "cubic",
    "bbr:probe_rtt=100ms*3,reno@250ms",
    "cubic@0s-3s",
    "cubic*2~up~rtt=20ms,bbr~rtt=80ms@5s-8s",
    "reno~up~access=10ms+20mbit~enter=r1",
    "cubic*4~rtt=20ms..160ms",
  ];
  expect(same.map((text) => write(parse(text)!))).toEqual(same);
  expect(parse("cubic*2, bbr@5s-8s")).toEqual([
    { ...group("cubic"), count: 2 },
    { ...group("bbr"), start: "5s", stop: "8s" },
  ]);
  expect(parse("cubic~enter=b~leave=c~access=10ms")).toEqual([{ ...group("cubic"), enter: "b", leave: "c", fields: "~access=10ms" }]);
  expect(write([{ ...group("cubic"), stop: "3s" }])).toBe("cubic@0s-3s");
  expect([parse(""), parse("cubic*,bbr"), parse(",")]).toEqual([[], null, null]);
});

const floats = (...values: number[]) => Float32Array.from(values);

test("shares are stacked to one wherever anything is carried; a flow that does not run has none", () => {
  const [one, two] = stacked([{ goodput: floats(3, 1, 0, 2) }, { goodput: floats(1, NaN, 0, 2) }]);
  expect([...one!.share]).toEqual([0.75, 1, NaN, 0.5]);
  expect([...two!.share]).toEqual([0.25, 0, NaN, 0.5]);
  expect([two!.low[0], two!.high[0], two!.high[1], two!.high[3]]).toEqual([0.75, 1, 1, 1]);
  expect(stacked([])).toEqual([]);
});

test("flows of one control have its colour and dashes of their own, the rest is one grey line", () => {
  const shares: Sharing = {
    seed: 0,
    every_s: 1,
    others: 5,
    columns: { t: floats(1), jain: floats(1), "flow.0": floats(1), "flow.1": floats(1), "flow.2": floats(1), others: floats(9) },
    flows: ["cubic", "cubic", "bbr"].map((cca) => ({ cca, direction: "down", start_s: 0, stop_s: 1, goodput_bps: 1 })),
  };
  const all = members(shares, (label) => ({ colour: label, dash: label === "bbr" ? 1 : 0, marker: "o" }));
  expect(all.map(({ label, look: { colour, dash } }) => [label, colour, dash])).toEqual([
    ["cubic 1", "cubic", 0],
    ["cubic 2", "cubic", 1],
    ["bbr", "bbr", 1],
    ["5 more flows", "#7a858f", 0],
  ]);
  const [first] = panelsOf(shares, all);
  expect(first!.readings!.map((each) => Number(each.y[0]!.toFixed(3)))).toEqual([0.083, 0.083, 0.083, 0.75]);
  expect(first!.areas!.at(-1)!.high[0]).toBeCloseTo(1, 6);
});

test("a sentence says how it is while all flows run, the greediest first", () => {
  const interval = (value: number | null) => ({ value, low: value, high: value });
  const said = {
    text: "",
    n: 2,
    wanted: 2,
    jain: interval(1),
    jain_overlap: interval(0.5),
    fair_after_s: interval(null),
    became_fair: 0,
    starved: 0,
    caveats: [],
  };
  const groups = [
    { name: "cubic", equal: 2 / 3, whole: interval(0.4), overlap: interval(0.25) },
    { name: "bbr", equal: 1 / 3, whole: interval(0.6), overlap: interval(0.75) },
  ];
  expect(together({ ...said, groups })).toBe(
    "While all of them run: bbr 75 % [75, 75], 2.3 × its equal share; cubic 25 % [25, 25], 0.38 × its equal share. Jain's index 0.5 [0.5, 0.5].",
  );
  expect(together({ ...said, groups: groups.map((each) => ({ ...each, overlap: interval(null) })) })).toBe("The flows never run at the same time.");
});
