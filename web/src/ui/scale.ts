/**
 * Scales of sliders: a slider has whole steps, its field has text with a unit; a scale leads from the one to the other.
 *
 * Most are logarithmic: each step is the same share of the value. Where zero makes sense (no jitter, no loss, no limit), it is the first step.
 */

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

/** Kinds of quantities, by the units in which people write them: each unit as a multiple of the first, the ones that are written first. */
const UNITS = {
  time: {
    written: [
      ["us", 1e-3],
      ["ms", 1],
      ["s", 1e3],
    ],
    read: { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, sec: 1e3, min: 6e4, h: 3.6e6 },
  },
  rate: {
    written: [
      ["kbit", 1e3],
      ["mbit", 1e6],
      ["gbit", 1e9],
    ],
    read: {
      bit: 1,
      kbit: 1e3,
      mbit: 1e6,
      gbit: 1e9,
      tbit: 1e12,
      "bit/s": 1,
      "kbit/s": 1e3,
      "mbit/s": 1e6,
      "gbit/s": 1e9,
      "b/s": 8,
      "kb/s": 8e3,
      "mb/s": 8e6,
      "gb/s": 8e9,
      "kib/s": 8192,
      "mib/s": 8388608,
      "gib/s": 8589934592,
    },
  },
  size: {
    written: [
      ["B", 1],
      ["KiB", 1024],
      ["MiB", 1048576],
      ["GiB", 1073741824],
    ],
    read: { "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 1048576, gib: 1073741824, k: 1024, m: 1048576, g: 1073741824 },
  },
  byterate: {
    written: [
      ["B/s", 1],
      ["kB/s", 1e3],
      ["MB/s", 1e6],
      ["GB/s", 1e9],
    ],
    read: {
      "b/s": 1,
      "kb/s": 1e3,
      "mb/s": 1e6,
      "gb/s": 1e9,
      "kib/s": 1024,
      "mib/s": 1048576,
      "gib/s": 1073741824,
      bit: 0.125,
      kbit: 125,
      mbit: 125e3,
      gbit: 125e6,
    },
  },
  percent: { written: [["%", 1]], read: { "%": 1 } },
  buffer: { written: [["bdp", 1]], read: { bdp: 1 } },
  number: { written: [["", 1]], read: { "": 1 } },
} as const satisfies Record<string, { written: readonly (readonly [string, number])[]; read: Record<string, number> }>;

/** A kind of quantity. */
export type Kind = keyof typeof UNITS;

const SPOKEN: Record<string, string> = {
  us: "microseconds", ms: "milliseconds", s: "seconds", kbit: "kilobit per second", mbit: "megabit per second", gbit: "gigabit per second",
  B: "bytes", "B/s": "bytes per second", "kB/s": "kilobytes per second", "MB/s": "megabytes per second", "GB/s": "gigabytes per second", KiB: "kibibytes", MiB: "mebibytes", GiB: "gibibytes", "%": "percent", bdp: "bandwidth-delay products", "": "",
}; // prettier-ignore

const QUANTITY = /^\s*([+]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s.,+-]*)\s*$/i;

/** A quantity in the unit of its kind (ms, bit/s, bytes, %, bandwidth-delay products), null where it is none: the server judges, this places a slider. */
export function quantity(kind: Kind, text: string): number | null {
  const parts = QUANTITY.exec(text);
  if (!parts) return null;
  const value = Number(parts[1]);
  if (value === 0 && !parts[2]) return 0;
  const [units, name] = [UNITS[kind].read as Record<string, number>, (parts[2] ?? "").toLowerCase()];
  return Object.hasOwn(units, name) && Number.isFinite(value) ? value * (units[name] as number) : null;
}

/** A quantity as people write it, with at most `digits` significant ones: `42ms`, `1.5s`, `10mbit`. */
export function written(kind: Kind, value: number, digits = 3): string {
  const [number, unit] = parted(kind, value, digits);
  return number + unit;
}

function parted(kind: Kind, value: number, digits: number): [string, string] {
  const rounded = Number(value.toPrecision(digits));
  let chosen: readonly [string, number] = UNITS[kind].written[0];
  for (const unit of UNITS[kind].written) if (rounded >= unit[1]) chosen = unit;
  return [decimal(Number((value / chosen[1]).toPrecision(digits))), chosen[0]];
}

/** A number without an exponent, which a field of a path would not show. */
function decimal(value: number): string {
  const text = String(value);
  return text.includes("e") ? value.toFixed(12).replace(/\.?0+$/, "") : text;
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
  const from = quantity(kind, low) ?? 1;
  const to = quantity(kind, high) ?? from * 1000;
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
      const there = quantity(kind, clean(text) === "" ? standard : text);
      if (has && (clean(text) === clean(zero) || clean(text) === "" || there === 0)) return nothing;
      if (there === null) return null;
      const at = first + (count * Math.log(Math.max(there, Number.MIN_VALUE) / from)) / Math.log(to / from);
      return Math.round(Math.min(first + count, Math.max(first, at)));
    },
    text: (step) => (step === nothing ? (zero as string) : step === first ? low : step === first + count ? high : written(kind, value(step), digits)),
    say(step) {
      if (step === nothing) return zeroSaid;
      const [number, unit] = parted(kind, value(step), digits);
      return `${number} ${SPOKEN[unit] ?? unit}`.trim();
    },
  };
}
