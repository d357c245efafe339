import { effect } from "@preact/signals";
import { expect, test } from "vitest";
import type { State } from "../src/server/contract";
import { change, state, unanswered } from "../src/state/state";

test("a slider that is let go where it is asks nothing anew", () => {
  state.value = { rtt: "50ms", cca: ["cubic", "bbr"], words: {} } as unknown as State;
  const seen: string[] = [];
  const stop = effect(() => void seen.push(`${state.value.rtt} ${String(state.value.cca)}`));
  change({ rtt: "50ms" });
  change({ cca: ["cubic", "bbr"], words: {} });
  change({ rtt: "60ms" });
  change({ rtt: "60ms", cca: ["bbr"] });
  stop();
  expect(seen).toEqual(["50ms cubic,bbr", "60ms cubic,bbr", "60ms bbr"]);
});

test("the same value asks again where it was not answered, once", () => {
  state.value = { rtt: "50ms" } as unknown as State;
  const seen: string[] = [];
  const stop = effect(() => void seen.push(state.value.rtt));
  unanswered();
  change({ rtt: "50ms" });
  change({ rtt: "50ms" });
  stop();
  expect(seen).toEqual(["50ms", "50ms"]);
});
