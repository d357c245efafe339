/** What the page begins with: congestion controls and their looks, presets, choices and defaults. */
import { signal } from "@preact/signals";
import { follow } from "../state/address";
import type { State } from "../state/state";
import { open } from "./stream";

export interface Control {
  name: string;
  colour: string;
  /** 0 solid, 1 dashed, 2 dotted, 3 mixed. */
  dash: number;
  marker: string;
}

export interface Start {
  version: string;
  state: State;
  controls: Control[];
}

export const start = signal<Start | null>(null);

/** Fetches the beginning, takes the state from the address and opens the stream. */
export async function begin(): Promise<void> {
  const there = (await (await fetch("/api/start")).json()) as Start;
  start.value = there;
  follow(there.state);
  open();
}
