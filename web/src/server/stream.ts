/** The page's stream of events: one for the whole page, with the blocks of every question. */
import { batch, signal } from "@preact/signals";
import { decode, type RawBlock } from "./blocks";

/** This page's name at the server. */
export const page: string = crypto.randomUUID();

/** Whether the server is there: `lost` until it is again, `refused` where it is another one, whose address was not opened yet. */
export const connection = signal<"opening" | "open" | "lost" | "refused">("opening");

/** Time between two attempts to open the stream again, ms. */
const AGAIN = 1000;

const takers = new Map<string, (block: RawBlock) => void>();

/** Calls `take` with every block of this kind of question. */
export function onBlock(kind: string, take: (block: RawBlock) => void): void {
  takers.set(kind, take);
}

let source: EventSource | null = null;
let again = 0;

/** Opens the stream, and opens it again whenever it breaks. */
export function open(): void {
  clearTimeout(again);
  again = 0;
  source?.close();
  const made = new EventSource(`/api/stream?page=${page}`);
  source = made;
  made.addEventListener("open", () => (connection.value = "open"));
  made.addEventListener("error", () => {
    if (connection.value !== "refused") connection.value = "lost";
    if (made.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    void whyNot();
    again ||= window.setTimeout(open, AGAIN);
  });
  made.addEventListener("block", (event: MessageEvent<string>) => {
    if (waiting.push(decode(event.data)) === 1) turn.port2.postMessage(null);
  });
}

/** Blocks that have come and are not taken yet. */
let waiting: RawBlock[] = [];
const turn = new MessageChannel();

/** Gives away what has come: blocks that come together are drawn once. No timer, which a hidden page's browser holds back. */
turn.port1.addEventListener("message", () => {
  const there = waiting;
  waiting = [];
  batch(() => there.forEach(give));
});
turn.port1.start();

/** Gives a block to its view. What that one cannot take is no reason to keep the others' from them: it is told as an error that nobody caught. */
function give(block: RawBlock): void {
  try {
    takers.get(block.kind)?.(block);
  } catch (error) {
    reportError(error);
  }
}

/** A request has not been answered. Whether the server is there is seen by a new stream: the one that there is may not have noticed anything. */
export function lost(): void {
  if (connection.value !== "refused") connection.value = "lost";
  again ||= window.setTimeout(open, AGAIN);
}

/** Finds out why there is no stream: a server that was started again does not know this page's cookie. */
async function whyNot(): Promise<void> {
  try {
    connection.value = (await fetch("/api/start")).status === 401 ? "refused" : "lost";
  } catch {
    connection.value = "lost";
  }
}
