import { beforeEach, expect, test, vi } from "vitest";
import type { State } from "../src/server/contract";

interface Asked {
  state: Partial<State>;
  answer: (said: object) => void;
}

let asked: Asked[];

beforeEach(() => {
  asked = [];
  vi.resetModules();
  vi.stubGlobal("fetch", (_: string, { body }: { body: string }) => {
    return new Promise((resolve) =>
      asked.push({ state: JSON.parse(body).state, answer: (said) => resolve({ ok: true, status: 200, json: async () => said }) }),
    );
  });
});

/** The request with this number, from 0, when it has been made. */
const request = (number: number) => vi.waitUntil(() => asked[number]);

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
  const { answer } = await request(0);
  change({ rtt: "80ms" });
  answer({ state: { rtt: "50ms", jitter: "5ms", cca: ["cubic"] } });
  await taken;
  expect(state.value).toMatchObject({ rtt: "80ms", jitter: "5ms" });
});

test("what the server says otherwise than it was typed becomes the state", async () => {
  const { take, state } = await made();
  const taken = take("words.forward", "delay 20ms", { words: { forward: "delay 20ms" } });
  const { answer } = await request(0);
  answer({ state: { rtt: "20ms", jitter: "", cca: ["cubic"], words: {} } });
  await taken;
  expect(state.value).toMatchObject({ rtt: "20ms", words: {} });
});

test("what is typed into two fields at once is taken one after the other", async () => {
  const { take, state } = await made();
  const both = [take("jitter", "5ms", { jitter: "5ms" }), take("loss", "1%", { loss: "1%" })];
  const first = await request(0);
  first.answer({ state: first.state });
  const second = await request(1);
  expect(second.state).toMatchObject({ jitter: "5ms", loss: "1%" });
  second.answer({ state: second.state });
  await Promise.all(both);
  expect(state.value).toMatchObject({ jitter: "5ms", loss: "1%" });
});
