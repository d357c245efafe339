/**
 * Scales of sliders: a slider has whole steps, its field has text with a unit; a scale leads from the one to the other.
 *
 * Most are logarithmic: each step is the same share of the value. Where zero makes sense (no jitter, no loss, no limit), it is the first step.
 */
import { type Kind, read, spoken, written } from "../charts/units";

/** What a slider and its field share. */
export interface Scale {
  /** The last step; the first is 0. */
  last: number;
  /** The step nearest to a text; null where the text cannot be placed (`64KiB` on a scale of bandwidth-delay products). */
  step(text: string): number | null;
  /** The text of a step, as it stands in the field. */
  text(step: number): string;
  /** The step in words, for those who hear it. */
  say(step: number): string;
}

interface LogScale {
  kind: Kind;
  /** Its ends, as people write them. */
  low: string;
  high: string;
  /** The text of the first step where that is not `low`: the field is empty for `""`. */
  zero?: string;
  /** The first step in words, `no limit`. */
  zeroSaid?: string;
  /** Whether zero stands at the right end, as for a rate without a limit. */
  zeroLast?: boolean;
  /** What an empty text stands for, where that is a place on the scale. */
  standard?: string;
  steps?: number;
}

/** A logarithmic scale between two quantities. */
export function logScale({ kind, low, high, zero, zeroSaid = "none", zeroLast = false, standard = "", steps = 200 }: LogScale): Scale {
  const from = read(kind, low) ?? 1;
  const to = read(kind, high) ?? from * 1000;
  const has = zero !== undefined;
  const first = has && !zeroLast ? 1 : 0;
  const nothing = has ? (zeroLast ? steps : 0) : null;
  const count = steps - (has ? 1 : 0);
  const digits = to / from > 1e5 ? 2 : 3;
  const value = (step: number) => from * (to / from) ** ((step - first) / count);
  const clean = (text: string) => text.trim().toLowerCase();
  return {
    last: steps,
    step(text) {
      const there = read(kind, clean(text) === "" ? standard : text);
      if (has && (clean(text) === clean(zero) || clean(text) === "" || there === 0)) return nothing;
      if (there === null) return null;
      const at = first + (count * Math.log(Math.max(there, Number.MIN_VALUE) / from)) / Math.log(to / from);
      return Math.round(Math.min(first + count, Math.max(first, at)));
    },
    text: (step) => (step === nothing ? (zero as string) : step === first ? low : step === first + count ? high : written(kind, value(step), digits)),
    say: (step) => (step === nothing ? zeroSaid : spoken(kind, value(step), digits)),
  };
}
