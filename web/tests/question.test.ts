import { effect } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";
import type { RawBlock } from "../src/server/blocks";
import { block as blockOf } from "./blocks";

/** Requests on their way: what was posted, and how to answer it. */
let posted: {
  body: { kind: string; generation: number; state: { rtt: string }; options: object };
  answer: (status: number, said?: object) => Promise<void>;
}[];
let take: (block: RawBlock) => void;

beforeEach(() => {
  vi.resetModules();
  posted = [];
  vi.stubGlobal(
    "fetch",
    (_: string, request: { body: string }) =>
      new Promise((resolve) => {
        posted.push({
          body: JSON.parse(request.body),
          answer: async (status, said = {}) => {
            resolve({ ok: status < 400, status, json: async () => said });
            for (let turn = 0; turn < 8; turn++) await Promise.resolve();
          },
        });
      }),
  );
});

async function made() {
  vi.doMock("../src/server/stream", async () => {
    const { signal } = await import("@preact/signals");
    const connection = signal("opening");
    return {
      page: "p",
      connection,
      lost: () => (connection.value = "lost"),
      onBlock: (_: string, taker: (block: RawBlock) => void) => (take = taker),
    };
  });
  const { connection } = await import("../src/server/stream");
  const { question } = await import("../src/server/question");
  const { state, change } = await import("../src/state/state");
  return { asked: question("answer"), connection, state, change, move: (rtt: string) => (state.value = { ...state.value, rtt }) };
}

const block = (generation: number, name: string, values: object = {}) => blockOf<RawBlock>(name, values, {}, generation);

test("while a request is on its way only the newest of those that follow is kept, and it is sent", async () => {
  const { asked, move } = await made();
  for (const rtt of ["10ms", "20ms", "30ms", "40ms"]) {
    move(rtt);
    asked.ask({ seeds: 20 });
  }
  expect(posted.map((each) => each.body.state.rtt)).toEqual(["10ms"]);
  await posted[0]!.answer(202);
  expect(posted.map((each) => each.body.state.rtt)).toEqual(["10ms", "40ms"]);
  await posted[1]!.answer(202);
  expect(posted.length).toBe(2);
});

test("blocks of an older question are left out, and old ones stay until the first new one", async () => {
  const { asked } = await made();
  asked.ask({});
  await posted[0]!.answer(202);
  take(block(1, "answer", { text: "first" }));
  asked.ask({});
  await posted[1]!.answer(202);
  expect(asked.blocks.value.map((each) => each.values.text)).toEqual(["first"]);
  take(block(1, "answer", { text: "stale" }));
  expect(asked.blocks.value.map((each) => each.values.text)).toEqual(["first"]);
  take(block(2, "answer", { text: "second" }));
  take(block(2, "end"));
  expect(asked.blocks.value.map((each) => each.values.text)).toEqual(["second"]);
  expect(asked.status.value).toBe("done");
});

test("what the server refuses is a line, and the next answer takes it away", async () => {
  const { asked } = await made();
  asked.ask({});
  await posted[0]!.answer(400, { text: "rtt: 0s is not a path; write for example 26ms" });
  expect(asked.error.value).toContain("26ms");
  expect(asked.status.value).toBe("failed");
  asked.ask({});
  await posted[1]!.answer(202);
  take(block(2, "answer", { text: "here" }));
  expect(asked.error.value).toBe("");
});

test("a cancel ends what waits, and says before which generation it is, so that it and the next question may overtake each other", async () => {
  const { asked } = await made();
  asked.ask({ seeds: 1 });
  asked.ask({ seeds: 2 });
  asked.cancel();
  expect(posted[1]!.body).toEqual({ page: "p", kind: "answer", generation: 2 });
  await posted[0]!.answer(202);
  expect(posted.length).toBe(2);
  asked.ask({ seeds: 3 });
  expect(posted[2]!.body).toMatchObject({ generation: 3, options: { seeds: 3 } });
});

test("the first opening of the stream asks nothing again; one after it was lost does, one request at a time", async () => {
  const { asked, connection } = await made();
  asked.ask({});
  connection.value = "open";
  expect(posted.length).toBe(1);
  connection.value = "lost";
  connection.value = "open";
  expect(posted.length).toBe(1);
  await posted[0]!.answer(202);
  expect(posted.length).toBe(2);
  await posted[1]!.answer(202);
  take(block(2, "end"));
  connection.value = "lost";
  connection.value = "open";
  expect(posted.length).toBe(2);
});

test("what was refused of a question that was left, or that a newer one replaces, is not said", async () => {
  const { asked } = await made();
  asked.ask({ seeds: 1 });
  asked.ask({ seeds: 2 });
  await posted[0]!.answer(400, { text: "of the older one" });
  expect([asked.error.value, asked.status.value]).toEqual(["", "asked"]);
  asked.cancel();
  await posted[1]!.answer(400, { text: "of the one that was left" });
  expect([asked.error.value, asked.status.value]).toEqual(["", "idle"]);
});

test("what was refused for a reason that passes is asked again by the same value, what is wrong is not", async () => {
  const { asked, state, move, change } = await made();
  move("60ms");
  const stop = effect(() => {
    if (state.value.rtt) asked.ask({});
  });
  await posted[0]!.answer(400, { text: "rtt: wrong" });
  change({ rtt: "60ms" });
  expect(posted.length).toBe(1);
  for (const [place, status] of [429, 503].entries()) {
    move("70ms");
    await posted[1 + 2 * place]!.answer(status);
    expect(asked.status.value).toBe("failed");
    change({ rtt: "70ms" });
    expect(posted.length).toBe(3 + 2 * place);
    await posted[2 + 2 * place]!.answer(202);
  }
  stop();
});
