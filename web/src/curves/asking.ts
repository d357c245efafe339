/** When a view asks: at once where it shows nothing yet or what was asked has changed, and not while it is moved along its own axes. */
import type { State } from "../server/contract";

/** What an answer is about: the state without the fields that are its axes, and the options. */
export function subject(state: State, axes: readonly string[], options: Record<string, unknown>): string {
  const rest: Record<string, unknown> = { ...state };
  for (const axis of axes) delete rest[axis];
  return JSON.stringify([rest, options, axes]);
}

/** A whole number of the address for the server; what is none goes there as it is, and the server says so. */
export function whole(text: string): number {
  return (/^\d{1,9}$/.test(text) ? Number(text) : text) as number;
}
