/** The quantities of the path's panel, in their order: each is a field of the state with a slider. Adding one: a line here and a field of `State`. */
import { logScale, type LogScale, type Scale } from "../ui/scale";
import type { State } from "../state/state";

/** Names of the state's fields that are one text. */
export type TextField = { [Name in keyof State]: State[Name] extends string ? Name : never }[keyof State];

export interface Quantity {
  name: TextField;
  label: string;
  scale: Scale;
  /** What stands in the empty field. */
  placeholder?: string;
  /** Whether it belongs to a bottleneck, and is idle without a rate. */
  ofRate?: boolean;
}

const quantity = (name: TextField, label: string, scale: LogScale, more: Partial<Quantity> = {}): Quantity => ({ name, label, scale: logScale(scale), ...more });

export const QUANTITIES = {
  rtt: quantity("rtt", "RTT", { kind: "time", low: "1ms", high: "1s" }),
  jitter: quantity("jitter", "Jitter", { kind: "time", low: "0.1ms", high: "100ms", zero: "", zeroSaid: "none" }, { placeholder: "none" }),
  loss: quantity("loss", "Loss", { kind: "percent", low: "0.001%", high: "20%", zero: "", zeroSaid: "none" }, { placeholder: "none" }),
  loss_burst: quantity("loss_burst", "Lost in a row", { kind: "number", low: "1", high: "100" }, { placeholder: "1" }),
  rate: quantity("rate", "Rate", { kind: "rate", low: "100kbit", high: "10gbit", zero: "", zeroSaid: "no limit", zeroLast: true }, { placeholder: "no limit" }),
  buffer: quantity("buffer", "Buffer", { kind: "buffer", low: "0.1bdp", high: "20bdp" }, { placeholder: "1bdp", ofRate: true }),
  rcvbuf: quantity("rcvbuf", "Receive buffer", { kind: "size", low: "4KiB", high: "64MiB", zero: "", zeroSaid: "autotuned", zeroLast: true }, { placeholder: "autotuned" }),
  app: quantity("app", "Application", { kind: "rate", low: "100kbit", high: "10gbit", zero: "", zeroSaid: "as fast as it can", zeroLast: true }, { placeholder: "full speed" }),
  duration: quantity("duration", "Duration", { kind: "time", low: "1s", high: "120s" }, { placeholder: "10s" }),
} satisfies Record<string, Quantity>;
