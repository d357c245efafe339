/** Quantities in base units (s, bit/s, bytes, shares of one) as people read them: `38.2 Mbit/s`, `50 ms`, `0.1 %`. */

export type Quantity = "time" | "rate" | "size" | "share" | "ratio" | "number";

export interface Unit {
  name: string;
  /** Base units in one of it. */
  size: number;
}

const UNITS: Record<Quantity, Unit[]> = {
  time: [
    { name: "µs", size: 1e-6 },
    { name: "ms", size: 1e-3 },
    { name: "s", size: 1 },
  ],
  rate: [
    { name: "bit/s", size: 1 },
    { name: "kbit/s", size: 1e3 },
    { name: "Mbit/s", size: 1e6 },
    { name: "Gbit/s", size: 1e9 },
  ],
  size: [
    { name: "B", size: 1 },
    { name: "kB", size: 1e3 },
    { name: "MB", size: 1e6 },
    { name: "GB", size: 1e9 },
  ],
  share: [{ name: "%", size: 0.01 }],
  ratio: [{ name: "×", size: 1 }],
  number: [{ name: "", size: 1 }],
};
const WRITTEN: Record<string, string> = { µs: "us", "bit/s": "bit", "kbit/s": "kbit", "Mbit/s": "mbit", "Gbit/s": "gbit" };

/** The unit in which the largest of these values is at least one. */
export function unitOf(quantity: Quantity, ...values: number[]): Unit {
  const units = UNITS[quantity];
  const largest = Math.max(0, ...values.filter(Number.isFinite).map(Math.abs));
  const fitting = units.filter((unit) => largest >= unit.size * (1 - 1e-9));
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
  const unit = unitOf(quantity, value);
  const number = plain(value / unit.size, digits);
  return unit.name ? (quantity === "ratio" ? `${unit.name}${number}` : `${number} ${unit.name}`) : number;
}

/** A value with its interval, all in one unit: `38.2 Mbit/s [36, 40.1]`. */
export function formatInterval(value: number, low: number, high: number, quantity: Quantity): string {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return format(value, quantity);
  const { size } = unitOf(quantity, value);
  return `${format(value, quantity)} [${plain(low / size)}, ${plain(high / size)}]`;
}

/** A value as one types it into a field: `38.2mbit`, `50ms`, `0.1%`. */
export function written(value: number, quantity: Quantity, digits = 3): string {
  const unit = unitOf(quantity, value);
  if (quantity === "ratio" || quantity === "number") return plain(value, digits);
  return value === 0 ? "0" : `${plain(value / unit.size, digits)}${WRITTEN[unit.name] ?? unit.name}`;
}

/** What stands behind an axis' title: ` (ms)`; nothing where each tick has its own unit. */
export function behindTitle(quantity: Quantity, unit: Unit | null): string {
  if (quantity === "ratio") return "";
  return unit?.name ? ` (${unit.name})` : "";
}
