import { beforeEach, expect, test, vi } from "vitest";
import type { State } from "../src/state/state";

let answer: (said: object) => void;

beforeEach(() => {
  vi.resetModules();
  vi.stubGlobal("fetch", () => new Promise((resolve) => (answer = (said) => resolve({ ok: true, status: 200, json: async () => said }))));
});

async function made() {
  vi.doMock("../src/server/stream", async () => {
    const { signal } = await import("@preact/signals");
    return { page: "p", connection: signal("open"), lost: () => undefined };
  });
  const [{ take }, { state, change }] = [await import("../src/path/agree"), await import("../src/state/state")];
  state.value = { rtt: "50ms", jitter: "", cca: ["cubic"] } as unknown as State;
  return { take, state, change };
}

test("a slider that moves while a typed text is judged keeps its place", async () => {
  const { take, state, change } = await made();
  const taken = take("jitter", "5ms", { jitter: "5ms" });
  change({ rtt: "80ms" });
  answer({ state: { rtt: "50ms", jitter: "5ms", cca: ["cubic"] } });
  await taken;
  expect(state.value).toMatchObject({ rtt: "80ms", jitter: "5ms" });
});

test("what the server says otherwise than it was typed becomes the state", async () => {
  const { take, state } = await made();
  const taken = take("words.forward", "delay 20ms", { words: { forward: "delay 20ms" } });
  answer({ state: { rtt: "20ms", jitter: "", cca: ["cubic"], words: {} } });
  await taken;
  expect(state.value).toMatchObject({ rtt: "20ms", words: {} });
});
