import { effect, signal } from "@preact/signals";
import { expect, test, vi } from "vitest";

/** A block as the stream carries it, without columns. */
function event(kind: string, name: string): { data: string } {
  const header = JSON.stringify({ kind, generation: 1, name, values: {}, columns: [] });
  return { data: btoa(String.fromCharCode(header.length & 255, header.length >> 8, 0, 0) + header) };
}

test("blocks that come together are given away in their order, and seen once", async () => {
  const listeners = new Map<string, (event: { data: string }) => void>();
  class Source {
    addEventListener(name: string, listen: (event: { data: string }) => void): void {
      listeners.set(name, listen);
    }
    close(): void {}
  }
  vi.stubGlobal("EventSource", Source);
  const { onBlock, open } = await import("../src/server/stream");
  const taken = signal<string[]>([]);
  for (const kind of ["curve", "answer"]) onBlock(kind, (block) => (taken.value = [...taken.peek(), `${kind} ${block.name}`]));
  const seen: string[][] = [];
  const stop = effect(() => void seen.push(taken.value));
  open();
  const send = listeners.get("block") as (event: { data: string }) => void;
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
