import { effect } from "@preact/signals";
import { expect, test, vi } from "vitest";
import { follow, read, write } from "../src/state/address";
import { state } from "../src/state/state";
import type { State } from "../src/server/contract";

const standard = { rtt: "50ms", ecn: false, cca: ["cubic", "bbr"], words: {}, changes: [] } as unknown as State;

test("an address says what differs from the defaults, and gives it back", () => {
  const now = { ...standard, rtt: "80ms", ecn: true, cca: ["reno"], changes: ["bottleneck@8s: rate 20mbit"] };
  const fragment = write(now, { view: "map" }, standard);
  expect(read(fragment, standard)).toEqual({ state: now, options: { view: "map" } });
  expect(write(standard, {}, standard)).toBe("");
});

test("a damaged or hostile address gives a state all the same", () => {
  for (const fragment of [
    "#%",
    "#=&&=",
    "#rtt=%E0%A4%A",
    "#__proto__=1&constructor=2&toString=3",
    "#words=x|forward: a: b|: |",
    "#cca=",
    "#ecn=maybe",
    `#rtt=${"9".repeat(10000)}`,
  ]) {
    const there = read(fragment, standard);
    expect(Object.keys(there.state)).toEqual(Object.keys(standard));
    expect(typeof there.state.rtt).toBe("string");
    expect(Array.isArray(there.state.cca)).toBe(true);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(there.options)).toBe(Object.prototype);
  }
});

test("tc's words with colons come back whole", () => {
  const now = { ...standard, words: { forward: "netem delay 5ms", bottleneck: "htb rate 1mbit; fq_codel: limit 3" } };
  expect(read(write(now, {}, standard), standard).state).toEqual(now);
});

test("a list that an address leaves empty is the default: a page without congestion controls would show the answer of others", () => {
  expect(read("#cca=&changes=", standard).state).toEqual(standard);
});

test("a page that is opened at an address is about that address from the beginning, never about the defaults first", () => {
  vi.stubGlobal("location", { hash: "#rtt=80ms", pathname: "/" });
  vi.stubGlobal("window", { addEventListener: () => undefined });
  const seen: string[] = [];
  const end = effect(() => {
    if (state.value.rtt !== undefined) seen.push(state.value.rtt);
  });
  follow(standard);
  end();
  vi.unstubAllGlobals();
  expect(seen).toEqual(["80ms"]);
});

test("what moves is written into the address when it is let go, and what follows at once", async () => {
  vi.resetModules();
  const [{ follow }, { change }] = [await import("../src/state/address"), await import("../src/state/state")];
  const listeners = new Map<string, () => void>();
  const place = { hash: "", pathname: "/" };
  const written: string[] = [];
  vi.stubGlobal("location", place);
  vi.stubGlobal("window", { addEventListener: (name: string, listen: () => void) => listeners.set(name, listen) });
  vi.stubGlobal("history", { replaceState: (_: unknown, __: string, there: string) => written.push((place.hash = there)) });
  follow(standard);
  listeners.get("pointerdown")?.();
  for (const rtt of ["60ms", "70ms", "80ms"]) change({ rtt });
  expect(written).toEqual([]);
  listeners.get("pointerup")?.();
  change({ rtt: "90ms" });
  listeners.get("pointerdown")?.();
  change({ rtt: "95ms" });
  change({ rtt: "90ms" });
  listeners.get("pointerup")?.();
  vi.unstubAllGlobals();
  expect(written).toEqual(["#rtt=80ms", "#rtt=90ms"]);
});
