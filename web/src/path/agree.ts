/**
 * The path as the server says it, always that of the state: tc's words, the path in a sentence, what words say of the fields. What is typed is judged here before
 * it becomes the state, so that a slip stops nothing that runs.
 */
import { effect, signal } from "@preact/signals";
import { post, Refusal } from "../server/post";
import { connection, lost } from "../server/stream";
import type { PathDocument, State } from "../server/contract";
import { change, state, unanswered } from "../state/state";

export const PARTS = ["forward", "bottleneck", "reverse"] as const;
export type Part = (typeof PARTS)[number];

/** The path of the state; null until the server has said it. */
export const path = signal<PathDocument | null>(null);
/** What is wrong with the state as a whole, from an address or a preset; empty where nothing is. */
export const wrong = signal("");
/** Texts that were typed and refused: field → the text and the server's line. */
export const slips = signal<Record<string, { text: string; line: string }>>({});

/** Takes fields that were typed into `name`, if the server finds nothing wrong with them; else the text stays there with the line that says why. */
export function take(name: string, text: string, fields: Partial<State> | ((now: State) => Partial<State>)): Promise<void> {
  // One after the other: what was typed a moment before is part of the state that this one changes.
  before = before.then(() => judge(name, text, typeof fields === "function" ? fields(state.peek()) : fields));
  return before;
}

let before = Promise.resolve();

async function judge(name: string, text: string, fields: Partial<State>): Promise<void> {
  const sent = { ...state.peek(), ...fields };
  try {
    const answer = await post<PathDocument>("path", { state: sent });
    forget(name);
    // A slider may have moved meanwhile: only what the server says otherwise than it was sent is changed.
    change({ ...fields, ...differing(answer.state, sent) });
  } catch (error) {
    if (error instanceof Refusal) slips.value = { ...slips.peek(), [name]: { text, line: error.message } };
    else lost();
  }
}

/** Forgets what was refused in a field: another value is there. */
export function forget(name: string): void {
  if (!(name in slips.peek())) return;
  const { [name]: _, ...others } = slips.peek();
  slips.value = others;
}

/** What the server says otherwise: words that fields can say have become fields. */
function differing(answer: State, sent: State): Partial<State> {
  return Object.fromEntries(Object.entries(answer).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(sent[name as keyof State])));
}

let asking = false;
let again = false;

async function look(): Promise<void> {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  do {
    again = false;
    const asked = state.peek();
    try {
      const answer = await post<PathDocument>("path", { state: asked });
      if (asked !== state.peek()) continue;
      path.value = answer;
      wrong.value = "";
      if (String(answer.state.cca) !== String(asked.cca)) change({ cca: answer.state.cca });
    } catch (error) {
      if (error instanceof Refusal) {
        wrong.value = error.message;
        if (error.isPassing) unanswered();
      }
    }
  } while (again);
  asking = false;
}

/** Follows the state from now on. */
export function agree(): void {
  effect(() => {
    if (state.value.rtt !== undefined && (connection.value === "open" || connection.value === "opening")) void look();
  });
}
