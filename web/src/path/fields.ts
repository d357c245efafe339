/** The quantities of the path's panel: each is a field of the state with a slider, whose ends the server says. */
import { start } from "../server/start";
import type { State } from "../server/contract";
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
  const slider = start.peek()?.fields[name];
  if (!slider) return null;
  const scale = {
    kind: slider.kind,
    low: slider.low,
    high: slider.high,
    zeroLast: WITHOUT_LIMIT.has(name),
    standard: slider.standard,
    ...(slider.zero_text ? { zero: "", zeroSaid: slider.zero_text } : {}),
  };
  return { label: slider.label, scale: logScale(scale), placeholder: slider.zero_text || slider.standard };
}
