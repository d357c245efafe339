/** Quantities in base units (s, bit/s, bytes, shares of one) as people read them (`38.2 Mbit/s`) and type them (`38.2mbit`). */
import { UNITS } from "../server/contract";

/** What a field's texts are. */
export type Kind = keyof typeof UNITS;
export type Quantity = "time" | "rate" | "size" | "share" | "ratio" | "number";

export interface Unit {
  name: string;
  /** Base units in one of it. */
  size: number;
}

const SHOWN: Record<Quantity, readonly Unit[]> = {
  time: [unit("µs", 1e-6), unit("ms", 1e-3), unit("s", 1)],
  rate: [unit("bit/s", 1), unit("kbit/s", 1e3), unit("Mbit/s", 1e6), unit("Gbit/s", 1e9)],
  size: [unit("B", 1), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9)],
  share: [unit("%", 0.01)],
  ratio: [unit("×", 1)],
  number: [unit("", 1)],
};
/** Units that are typed, each with its name as it is spoken. */
const TYPED: Record<Kind, Record<string, string>> = {
  time: { us: "microseconds", ms: "milliseconds", s: "seconds" },
  rate: { kbit: "kilobit per second", mbit: "megabit per second", gbit: "gigabit per second" },
  size: { B: "bytes", KiB: "kibibytes", MiB: "mebibytes", GiB: "gibibytes" },
  byterate: { "B/s": "bytes per second", "kB/s": "kilobytes per second", "MB/s": "megabytes per second", "GB/s": "gigabytes per second" },
  share: { "%": "percent" },
  buffer: { bdp: "bandwidth-delay products" },
  number: { "": "" },
};
const QUANTITY = /^\s*([+]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s.,+-]*)\s*$/i;

function unit(name: string, size: number): Unit {
  return { name, size };
}

/** The unit in which the largest of these values is at least one. */
export function unitOf(quantity: Quantity, ...values: number[]): Unit {
  const units = SHOWN[quantity];
  const largest = Math.max(0, ...values.filter(Number.isFinite).map(Math.abs));
  const fitting = units.filter(({ size }) => largest >= size * (1 - 1e-9));
  return (largest ? fitting.at(-1) : units.at(quantity === "time" ? 1 : 0)) ?? (units[0] as Unit);
}

/** A number with at most `digits` significant digits, no exponent in the usual range and no zeros behind it. */
export function plain(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toPrecision(digits).replace(/\.?0+(e|$)/, "$1");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 12));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A value with its unit. */
export function format(value: number, quantity: Quantity, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  const { name, size } = unitOf(quantity, value);
  const number = plain(value / size, digits);
  return name ? (quantity === "ratio" ? `${name}${number}` : `${number} ${name}`) : number;
}

/** A value with its interval, all in one unit: `38.2 Mbit/s [36, 40.1]`. */
export function formatInterval(value: number, low: number, high: number, quantity: Quantity): string {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return format(value, quantity);
  const { size } = unitOf(quantity, value);
  return `${format(value, quantity)} [${plain(low / size)}, ${plain(high / size)}]`;
}

/** The base unit of a quantity, behind the name of a column: `RTT (s)`. */
export function inBase(name: string, quantity: Quantity): string {
  const base = { time: "s", rate: "bit/s", size: "B", share: "share", ratio: "", number: "" }[quantity];
  return base ? `${name} (${base})` : name;
}

/** What stands behind an axis' title: ` (ms)`; nothing where each tick has its own unit. */
export function behindTitle(quantity: Quantity, shown: Unit | null): string {
  if (quantity === "ratio") return "";
  return shown?.name ? ` (${shown.name})` : "";
}

/** A typed quantity in base units, null where it is none: the server judges, this places a slider. */
export function read(kind: Kind, text: string): number | null {
  const parts = QUANTITY.exec(text);
  if (!parts) return null;
  const value = Number(parts[1]);
  if (value === 0 && !parts[2]) return 0;
  const [units, name] = [UNITS[kind] as Record<string, number>, (parts[2] ?? "").toLowerCase()];
  return Object.hasOwn(units, name) && Number.isFinite(value) ? value * (units[name] as number) : null;
}

/** A quantity as one types it, with at most `digits` significant digits: `42ms`, `1.5s`, `10mbit`, `0.1%`. */
export function written(kind: Kind, value: number, digits = 3): string {
  const { number, name } = parted(kind, value, digits);
  return number + name;
}

/** The same in words. */
export function spoken(kind: Kind, value: number, digits = 3): string {
  const { number, name } = parted(kind, value, digits);
  return `${number} ${TYPED[kind][name]}`.trim();
}

/** The number and the unit of a typed quantity: the largest unit of which there is one. */
function parted(kind: Kind, value: number, digits: number): { number: string; name: string } {
  const rounded = Number(value.toPrecision(digits));
  const units = Object.keys(TYPED[kind]).map((name) => unit(name, (UNITS[kind] as Record<string, number>)[name.toLowerCase()] as number));
  const { name, size } = units.findLast((each) => rounded >= each.size * (1 - 1e-9)) ?? (units[0] as Unit);
  return { number: decimal(Number((value / size).toPrecision(digits))), name };
}

/** A number without an exponent, which a field of a path would not show. */
function decimal(value: number): string {
  const text = String(value);
  return text.includes("e") ? value.toFixed(12).replace(/\.?0+$/, "") : text;
}
