import { effect, signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";

/** A block as the stream carries it, without columns. */
function event(kind: string, name: string): { data: string } {
  const header = JSON.stringify({ kind, generation: 1, name, values: {}, columns: [] });
  return { data: btoa(String.fromCharCode(header.length & 255, header.length >> 8, 0, 0) + header) };
}

let send: (event: { data: string }) => void;

beforeEach(() => {
  class Source {
    addEventListener(name: string, listen: (event: { data: string }) => void): void {
      if (name === "block") send = listen;
    }
    close(): void {}
  }
  vi.resetModules();
  vi.stubGlobal("EventSource", Source);
});

test("blocks that come together are given away in their order, and seen once", async () => {
  const { onBlock, open } = await import("../src/server/stream");
  const taken = signal<string[]>([]);
  for (const kind of ["curve", "answer"]) onBlock(kind, (block) => (taken.value = [...taken.peek(), `${kind} ${block.name}`]));
  const seen: string[][] = [];
  const stop = effect(() => void seen.push(taken.value));
  open();
  send(event("curve", "points"));
  send(event("answer", "answer"));
  send(event("curve", "runs"));
  await vi.waitUntil(() => taken.peek().length === 3);
  send(event("curve", "end"));
  await vi.waitUntil(() => taken.peek().length === 4);
  stop();
  const all = ["curve points", "answer answer", "curve runs", "curve end"];
  expect(seen).toEqual([[], all.slice(0, 3), all]);
});

test("a view that fails on a block keeps no other block from its view, and its error is told", async () => {
  const told: unknown[] = [];
  vi.stubGlobal("reportError", (error: unknown) => told.push(error));
  const { onBlock, open } = await import("../src/server/stream");
  const [taken, broken] = [signal<string[]>([]), new Error("a bug of the curve")];
  onBlock("curve", () => {
    throw broken;
  });
  onBlock("answer", (block) => (taken.value = [...taken.peek(), block.name]));
  open();
  for (const [kind, name] of [
    ["answer", "first"],
    ["curve", "points"],
    ["answer", "second"],
  ] as const)
    send(event(kind, name));
  await vi.waitUntil(() => taken.peek().length === 2);
  expect(taken.peek()).toEqual(["first", "second"]);
  expect(told).toEqual([broken]);
});
