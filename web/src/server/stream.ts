/** The page's stream of events: one for the whole page, with the blocks of every question. */
import { signal } from "@preact/signals";
import { type Block, decode } from "./blocks";

/** This page's name at the server. */
export const page: string = crypto.randomUUID();

/** Whether the server is there; `lost` until it is again. */
export const connection = signal<"opening" | "open" | "lost">("opening");

const takers = new Map<string, (block: Block) => void>();

/** Calls `take` with every block of this kind of question. */
export function onBlock(kind: string, take: (block: Block) => void): void {
  takers.set(kind, take);
}

/** Opens the stream; the browser opens it again whenever it breaks. */
export function open(): void {
  const source = new EventSource(`/api/stream?page=${page}`);
  source.addEventListener("open", () => (connection.value = "open"));
  source.addEventListener("error", () => (connection.value = "lost"));
  source.addEventListener("block", (event: MessageEvent<string>) => {
    const block = decode(event.data);
    takers.get(block.kind)?.(block);
  });
}
