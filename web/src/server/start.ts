/** What the page begins with: congestion controls and their looks, presets, choices and defaults. */
import { signal } from "@preact/signals";
import type { Choice as AxisChoice } from "../axes/axes";
import { follow } from "../state/address";
import type { State } from "../state/state";
import type { Kind } from "../ui/scale";
import type { Choice } from "../ui/select";
import { open } from "./stream";

export interface Control {
  name: string;
  colour: string;
  /** 0 solid, 1 dashed, 2 dotted, 3 mixed. */
  dash: number;
  marker: string;
  about?: string;
  parameters?: { name: string; about: string; default: number; values: string }[];
}

/** A field of the path that has a slider (`python/tcpscape/web/start.py`). */
export interface SliderOf {
  label: string;
  kind: Kind;
  low: string;
  high: string;
  /** What an empty text stands for. */
  standard: string;
  /** Whether one end of the slider is the empty text, which `zero_text` calls by its name. */
  zero: boolean;
  zero_text: string;
}

export interface Preset {
  group: string;
  id: string;
  title: string;
  note: string;
  source: string;
  /** What differs from the standard state. */
  state: Partial<State>;
}

export interface Start {
  version: string;
  state: State;
  controls: Control[];
  /** What curves and maps vary. */
  axes: AxisChoice[];
  fields: Record<string, SliderOf>;
  choices: Record<string, Choice[]>;
  presets: Preset[];
}

export const start = signal<Start | null>(null);

/** Fetches the beginning, takes the state from the address and opens the stream. Throws an Error whose message says what to do. */
export async function begin(): Promise<void> {
  const answer = await fetch("/api/start").catch(() => {
    throw new Error("The server does not answer. Start `tcpscape explore` and open the address that it prints.");
  });
  if (answer.status === 401) throw new Error("This page has no key of the server. Open the address that `tcpscape explore` printed.");
  if (!answer.ok) throw new Error(((await answer.json()) as { text?: string }).text ?? "The server cannot begin; its terminal says why.");
  const there = (await answer.json()) as Start;
  start.value = there;
  follow(there.state);
  open();
}
