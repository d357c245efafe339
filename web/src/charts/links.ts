/** What plots share: the stretch of x that they show and the place of the cursor. */
import { signal, type Signal } from "@preact/signals";
import type { Range } from "./description";

export interface Link {
  /** The stretch that is shown; null is the whole. */
  readonly range: Signal<Range | null>;
  /** The value of x under the cursor; null where there is none. */
  readonly cursor: Signal<number | null>;
}

const links = new Map<string, Link>();

/** The link of this key, the same for every plot that names it. */
export function link(key: string): Link {
  const there = links.get(key) ?? fresh();
  links.set(key, there);
  return there;
}

/** Shows the whole again where what is shown reaches beyond it: there is a shorter run, another capture. */
export function keepWithin({ range }: Link, [from, to]: Range): void {
  const shown = range.peek();
  const close = 1e-6 * (to - from); // the ends of a logarithmic axis come back with a rounding
  if (shown && (shown[0] < from - close || shown[1] > to + close)) range.value = null;
}

/** A link of one plot alone. */
export function fresh(): Link {
  return { range: signal<Range | null>(null), cursor: signal<number | null>(null) };
}
