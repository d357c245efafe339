import { expect, test } from "vitest";
import { added, ended, happenings, moved, parse, removed, seconds, timeText, titleOf, valued, write } from "../../src/inside/changes";

const TEXTS = ["bottleneck@8s: rate 20mbit", "forward@2.5s: delay 40ms outage", "reverse@1s: loss 1%", "forward@2650ms: outage off"];

test("times are read and written as people type them", () => {
  expect(["8s", "300ms", "1.5s", "250us", "2", "1min"].map(seconds)).toEqual([8, 0.3, 1.5, 2.5e-4, 2, 60]);
  expect(["", "soon", "1m", "8parsec", "8constructor"].map(seconds)).toEqual([null, null, null, null, null]);
  expect([8, 0.25, 8.25, 0, 12.3456, 600].map(timeText)).toEqual(["8s", "250ms", "8.25s", "0s", "12.346s", "600s"]);
});

test("a text taken apart is the same text again", () => {
  const same = [
    "bottleneck@8s: rate 20mbit",
    "forward.1@500ms: delay 40ms loss 1%",
    "forward@2s: outage",
    "reverse@3s: outage off",
    "bottleneck@4s: burst 15KiB limit 100",
  ];
  expect(same.map((text) => write(parse(text)!))).toEqual(same);
  expect(write(parse(" bottleneck @ 8s :rate 20mbit, burst 15KiB")!)).toBe("bottleneck@8s: rate 20mbit burst 15KiB");
  expect(["", "rate 20mbit", "bottleneck@8s", "bottleneck@8s: rate", "bottleneck@x: rate 1mbit"].map(parse)).toEqual([null, null, null, null, null]);
});

test("an outage and its end are one thing, with a new delay a handover", () => {
  const there = happenings(TEXTS);
  expect(there.map(({ kind, places, at, until }) => ({ kind, places, at, until }))).toEqual([
    { kind: "rate", places: [0], at: 8, until: null },
    { kind: "handover", places: [1, 3], at: 2.5, until: 2.65 },
    { kind: "other", places: [2], at: 1, until: null },
  ]);
  expect(there.map(titleOf)).toEqual(["rate 20mbit", "handover: delay 40ms", "loss 1% (reverse)"]);
  expect(happenings(["forward@2s: outage", "forward@1s: outage off"]).map((each) => each.until)).toEqual([null, null]);
  expect(happenings(["forward@3s: outage off", "forward@2s: outage"]).map(({ kind, places }) => [kind, places])).toEqual([["outage", [1, 0]]]);
  expect(
    happenings(["forward@1s: outage", "forward@4s: outage", "forward@5s: outage off", "forward@2s: outage off"]).map((each) => each.until),
  ).toEqual([2, 5]);
});

test("what is dragged is written at its new time, an outage with its end, and nothing else changes", () => {
  const [rate, handover] = happenings(TEXTS);
  expect(moved(TEXTS, rate!, 4.00049, 10)).toEqual(["bottleneck@4s: rate 20mbit", ...TEXTS.slice(1)]);
  expect(moved(TEXTS, handover!, 5, 10)).toEqual([TEXTS[0], "forward@5s: delay 40ms outage", TEXTS[2], "forward@5.15s: outage off"]);
  expect(happenings(moved(TEXTS, handover!, 99, 10))[1]).toMatchObject({ at: 9.84, until: 9.99 });
  expect(moved(TEXTS, rate!, -3, 10)[0]).toBe("bottleneck@0s: rate 20mbit");
  expect(ended(TEXTS, handover!, 3, 10)[3]).toBe("forward@3s: outage off");
  expect(ended(TEXTS, handover!, 1, 10)[3]).toBe("forward@2.51s: outage off");
});

test("values are edited, changes removed with their ends and added", () => {
  const [rate, handover] = happenings(TEXTS);
  expect(valued(TEXTS, rate!, "rate", "5mbit")[0]).toBe("bottleneck@8s: rate 5mbit");
  expect(valued(TEXTS, handover!, "delay", "70ms")[1]).toBe("forward@2.5s: delay 70ms outage");
  expect(removed(TEXTS, handover!)).toEqual([TEXTS[0], TEXTS[2]]);
  expect(added([], "rate", 5, "10mbit")).toEqual(["bottleneck@5s: rate 10mbit"]);
  expect(added([], "handover", 5, "60ms")).toEqual(["forward@5s: delay 60ms outage", "forward@5.15s: outage off"]);
  expect(happenings(added(TEXTS, "outage", 3, "")).at(-1)).toMatchObject({ kind: "outage", at: 3, until: 4 });
});

test("a text that cannot be read stays where it is", () => {
  const texts = ["what is this", ...TEXTS];
  const [rate] = happenings(texts);
  expect(moved(texts, rate!, 1, 10).slice(0, 2)).toEqual(["what is this", "bottleneck@1s: rate 20mbit"]);
});
