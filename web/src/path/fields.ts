/** The quantities of the path's panel: each is a field of the state with a slider, whose ends the server says. */
import { start } from "../server/start";
import type { State } from "../state/state";
import { logScale, type Scale } from "../ui/scale";

/** Names of the state's fields that are one text. */
export type TextField = { [Name in keyof State]: State[Name] extends string ? Name : never }[keyof State];

export interface Quantity {
  label: string;
  scale: Scale;
  /** What stands in the empty field. */
  placeholder: string;
}

/** Fields whose empty text is more than any value: it stands at the slider's right end. */
const WITHOUT_LIMIT = new Set<TextField>(["rate", "rcvbuf", "app"]);
const known = new Map<TextField, Quantity | null>();

/** The quantity of a field; null where the server says none. */
export function quantityOf(name: TextField): Quantity | null {
  if (!known.has(name)) known.set(name, made(name));
  return known.get(name) ?? null;
}

function made(name: TextField): Quantity | null {
  const said = start.peek()?.fields[name];
  if (!said) return null;
  const scale = { kind: said.kind, low: said.low, high: said.high, zeroLast: WITHOUT_LIMIT.has(name), standard: said.standard, ...(said.zero ? { zero: "", zeroSaid: said.zero_text } : {}) };
  return { label: said.label, scale: logScale(scale), placeholder: said.zero_text || said.standard };
}
