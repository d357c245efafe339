/**
 * The state of the page: every field is text as a user writes it (`50ms`, `10mbit`, `0.1%`); an empty text is the default. The same texts stand in the
 * page's address.
 */
import { computed, signal, type Signal } from "@preact/signals";
import type { State } from "../server/contract";

/** The state that the questions are about. Views read it, the path's panel and the views' clicks write it through `change`. */
export const state: Signal<State> = signal({} as State);

let isUnanswered = false;

/** Something that was asked of the state was refused for a reason that passes: whoever sets a field next asks again, to the same value too. */
export function unanswered(): void {
  isUnanswered = true;
}

/** Sets some fields of the state at once; where they are what they were, nothing is asked anew, unless it was not answered. */
export function change(fields: Partial<State>): void {
  const now = state.peek();
  const differs = Object.entries(fields).some(([name, value]) => JSON.stringify(value) !== JSON.stringify(now[name as keyof State]));
  if (!differs && !isUnanswered) return;
  isUnanswered = false;
  state.value = { ...now, ...fields };
}

/** Whether a state has more than one link and its flows: the view *Network* shows that. */
export function isNetwork({ links, transfers, probes }: Partial<State>): boolean {
  return [links, transfers, probes].some((each) => each?.length);
}

/** What views are about, beyond the state: options of theirs that belong into the address too (`view`, `curve.axis`, `map.x`), as text. */
export const options: Signal<Record<string, string>> = signal({});

/** One option as a signal of its own, with its default. */
export function option(name: string, standard: string) {
  return computed(() => options.value[name] ?? standard);
}

/** Sets an option. */
export function choose(name: string, value: string): void {
  options.value = { ...options.value, [name]: value };
}
