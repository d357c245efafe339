/**
 * The changes of the path in `state.changes`, as things on a timeline: a step of one value, an outage with its begin and end, a handover (a short outage
 * after which the delay is another one). Texts follow `scenario/changes.py`: `WHERE[.HOP]@TIME: NAME VALUE …`. What these rules do not know stays as it is.
 */
import { plain, read } from "../charts/units";
import { GRAMMAR } from "../server/contract";

/** One text, taken apart. */
export interface Change {
  where: string;
  /** s. */
  at: number;
  values: [name: string, value: string][];
}

export type Kind = "rate" | "handover" | "outage" | "other";

/** What stands on the timeline: one change, or the start and the end of an outage. */
export interface Happening {
  kind: Kind;
  where: string;
  /** Places of its texts in `state.changes`; the second ends the outage. */
  places: number[];
  at: number;
  /** End of the outage, s. */
  until: number | null;
  /** What changes, without the outage. */
  values: [name: string, value: string][];
}

const TEXT = new RegExp(`^${GRAMMAR.change}$`, "s");
/** Shortest outage that dragging leaves, s. */
const SHORTEST = 0.01;

/** A time as it is typed, in s, without a unit too; null where it is none. */
export function seconds(text: string): number | null {
  return read("time", /[a-zµ]/i.test(text) ? text : `${text}s`);
}

/** A time on a timeline as text: `8s`, `8.25s`, `150ms`. */
export function timeText(at: number): string {
  const ms = Math.round(at * 1e3);
  return ms !== 0 && ms < 1000 ? `${ms}ms` : `${plain(ms / 1e3, 9)}s`;
}

/** A text taken apart; null where it does not follow the grammar. */
export function parse(text: string): Change | null {
  const { where, hop, at = "", words: rest = "" } = TEXT.exec(text)?.groups ?? {};
  const time = seconds(at);
  if (!where || time === null) return null;
  const words = rest.replaceAll(",", " ").split(/\s+/).filter(Boolean);
  const values: [string, string][] = [];
  while (words.length) {
    const name = words.shift() as string;
    if (name === "outage") values.push([name, words[0] === "on" || words[0] === "off" ? (words.shift() as string) : "on"]);
    else if (!words.length) return null;
    else values.push([name, words.shift() as string]);
  }
  return { where: hop ? `${where}.${hop}` : where, at: time, values };
}

/** The text of a change. */
export function write({ where, at, values }: Change): string {
  const words = values.map(([name, value]) => (name === "outage" && value === "on" ? name : `${name} ${value}`));
  return `${where}@${timeText(at)}: ${words.join(" ")}`;
}

/** What stands on the timeline for these texts, in their order; a text that cannot be read is left out. */
export function happenings(texts: readonly string[]): Happening[] {
  const changes = texts.map(parse);
  const ends = new Set<number>();
  const found: Happening[] = [];
  changes.forEach((change, place) => {
    if (!change || ends.has(place)) return;
    const values = change.values.filter(([name]) => name !== "outage");
    const begins = change.values.some(([name, value]) => name === "outage" && value === "on");
    const end = begins ? endOf(changes, place, ends) : -1;
    if (end >= 0) ends.add(end);
    const kind = begins ? (values.length ? "handover" : "outage") : change.where.startsWith("bottleneck") && only(values, "rate") ? "rate" : "other";
    const until = end >= 0 ? (changes[end] as Change).at : null;
    found.push({ kind, where: change.where, places: end >= 0 ? [place, end] : [place], at: change.at, until, values });
  });
  return found.filter((each) => !(each.places.length === 1 && ends.has(each.places[0] as number)));
}

/** The place of the change that does nothing but end the outage begun at `place`; -1 where there is none. */
function endOf(changes: readonly (Change | null)[], place: number, taken: ReadonlySet<number>): number {
  const begin = changes[place] as Change;
  let best = -1;
  changes.forEach((each, i) => {
    const isEnd = each && each.values.length === 1 && each.values[0]?.[0] === "outage" && each.values[0][1] === "off";
    if (!isEnd || taken.has(i) || each.where !== begin.where || each.at < begin.at) return;
    if (best < 0 || each.at < (changes[best] as Change).at) best = i;
  });
  return best;
}

function only(values: readonly [string, string][], name: string): boolean {
  return values.length === 1 && values[0]?.[0] === name;
}

/** The texts with a happening moved to another time; an outage keeps its length. */
export function moved(texts: readonly string[], which: Happening, to: number, end: number): string[] {
  const length = which.until === null ? 0 : which.until - which.at;
  const at = rounded(Math.min(Math.max(0, to), Math.max(0, end - length - SHORTEST)), end);
  return replaced(texts, which, { ...which, at, until: which.until === null ? null : at + length });
}

/** The texts with an outage that ends at another time. */
export function ended(texts: readonly string[], which: Happening, to: number, end: number): string[] {
  return replaced(texts, which, { ...which, until: Math.max(which.at + SHORTEST, rounded(Math.min(to, end - SHORTEST), end)) });
}

/** The texts with another value. */
export function valued(texts: readonly string[], which: Happening, name: string, value: string): string[] {
  return replaced(texts, which, { ...which, values: which.values.map(([each, old]) => [each, each === name ? value : old]) });
}

/** The texts without a happening. */
export function removed(texts: readonly string[], which: Happening): string[] {
  return texts.filter((_, place) => !which.places.includes(place));
}

/** The texts of something new. */
export function added(texts: readonly string[], kind: Kind, at: number, value: string): string[] {
  if (kind === "rate") return [...texts, write({ where: "bottleneck", at, values: [["rate", value]] })];
  const change: [string, string][] = kind === "handover" ? [["delay", value]] : [];
  const until = at + (kind === "handover" ? HANDOVER : OUTAGE);
  return [
    ...texts,
    write({ where: "forward", at, values: [...change, ["outage", "on"]] }),
    write({ where: "forward", at: until, values: [["outage", "off"]] }),
  ];
}

/** How long new outages last, s. */
const HANDOVER = 0.15;
const OUTAGE = 1;

function replaced(texts: readonly string[], which: Happening, now: Happening): string[] {
  const [begin, end] = which.places;
  const outage: [string, string][] = which.kind === "outage" || which.kind === "handover" ? [["outage", "on"]] : [];
  return texts.map((text, place) => {
    if (place === begin) return write({ where: now.where, at: now.at, values: [...now.values, ...outage] });
    if (place === end && now.until !== null) return write({ where: now.where, at: now.until, values: [["outage", "off"]] });
    return text;
  });
}

/** A time on the grid of a timeline: a thousandth of it, round. */
function rounded(at: number, end: number): number {
  const step = 10 ** Math.max(-3, Math.floor(Math.log10(Math.max(end, 1e-3) / 500)));
  return Math.round(at / step) * step;
}

/** What a happening is, in words. */
export function titleOf(which: Happening): string {
  const where = which.where === "bottleneck" ? "" : ` (${which.where})`;
  const values = which.values.map(([name, value]) => `${name} ${value}`).join(", ");
  if (which.kind === "rate") return `rate ${which.values[0]?.[1] ?? ""}`;
  if (which.kind === "handover") return `handover: ${values}`;
  if (which.kind === "outage") return `outage${where}`;
  return `${values || "outage off"}${where}`;
}
