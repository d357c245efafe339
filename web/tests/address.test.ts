import { expect, test } from "vitest";
import { read, write } from "../src/state/address";
import type { State } from "../src/state/state";

const standard = { rtt: "50ms", ecn: false, cca: ["cubic", "bbr"], words: {}, changes: [] } as unknown as State;

test("an address says what differs from the defaults, and gives it back", () => {
  const now = { ...standard, rtt: "80ms", ecn: true, cca: ["reno"], changes: ["bottleneck@8s: rate 20mbit"] };
  const fragment = write(now, { view: "map" }, standard);
  expect(read(fragment, standard)).toEqual({ state: now, options: { view: "map" } });
  expect(write(standard, {}, standard)).toBe("");
});
