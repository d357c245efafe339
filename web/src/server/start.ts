/** What the page begins with: congestion controls and their looks, presets, choices and defaults. */
import { signal } from "@preact/signals";
import { follow } from "../state/address";
import type { StartDocument } from "./contract";
import { open } from "./stream";

export const start = signal<StartDocument | null>(null);

/** Fetches the beginning, takes the state from the address and opens the stream. Throws an Error whose message says what to do. */
export async function begin(): Promise<void> {
  const answer = await fetch("/api/start").catch(() => {
    throw new Error("The server does not answer. Start `tcpscape explore` and open the address that it prints.");
  });
  if (answer.status === 401) throw new Error("This page has no key of the server. Open the address that `tcpscape explore` printed.");
  if (!answer.ok) throw new Error(((await answer.json()) as { text?: string }).text ?? "The server cannot begin; its terminal says why.");
  const there = (await answer.json()) as StartDocument;
  start.value = there;
  follow(there.state);
  open();
}
