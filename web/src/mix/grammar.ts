/** The grammar of a mixture, `CCA[*COUNT][~FIELD…][@START[-STOP]],…` as in `cubic*2~rtt=20ms,bbr~up@5s-8s` (`scenario/grammar.py`). */
import { GRAMMAR } from "../server/contract";

export interface Group {
  cca: string;
  count: number;
  /** Whether their data travel up: uploads. */
  up: boolean;
  /** Their round-trip time, as text; empty is the path's. */
  rtt: string;
  /** Their other fields as they were typed, `~access=10ms~enter=r1`. */
  fields: string;
  /** When its flows connect and stop, as text; empty is the start, the end. */
  start: string;
  stop: string;
}

const PART = new RegExp(`^${GRAMMAR.mix}$`);

/** The groups of a text; null where a part of it does not follow the grammar. */
export function parse(text: string): Group[] | null {
  if (!text.trim()) return [];
  const groups = text.split(",").map((part) => {
    const said = PART.exec(part.trim())?.groups;
    if (!said) return null;
    const fields = (said.fields ?? "").split("~").slice(1);
    const rtt = fields.find((each) => each.startsWith("rtt=")) ?? "";
    const others = fields.filter((each) => each !== "up" && each !== "down" && each !== rtt);
    return {
      cca: said.cca as string,
      count: Number(said.count ?? 1),
      up: fields.includes("up"),
      rtt: rtt.replace("rtt=", ""),
      fields: others.map((each) => `~${each}`).join(""),
      start: said.start ?? "",
      stop: said.stop ?? "",
    };
  });
  return groups.every((each) => each !== null) ? groups : null;
}

/** A group of one flow that begins with the path, over the whole of it. */
export function group(cca: string): Group {
  return { cca, count: 1, up: false, rtt: "", fields: "", start: "", stop: "" };
}

/** The text of groups. A stop needs a start. */
export function write(groups: readonly Group[]): string {
  return groups
    .map(({ cca, count, up, rtt, fields, start, stop }) => {
      const where = `${up ? "~up" : ""}${rtt ? `~rtt=${rtt}` : ""}${fields}`;
      return `${cca}${count === 1 ? "" : `*${count}`}${where}${start || stop ? `@${start || "0s"}` : ""}${stop ? `-${stop}` : ""}`;
    })
    .join(",");
}
