/** The grammar of a mixture, `CCA[*COUNT][~FIELD…][@START[-STOP]],…` as in `cubic*2~rtt=20ms,bbr~up@5s-8s` (`scenario/grammar.py`). */
import { GRAMMAR } from "../server/contract";

export interface Group {
  cca: string;
  count: number;
  /** Whether their data travel up: uploads. */
  up: boolean;
  /** Their round-trip time, as text; empty is the path's. */
  rtt: string;
  /** The routers between which they travel; empty are the ends of the chain. */
  enter: string;
  leave: string;
  /** Their other fields as they were typed, `~access=10ms`. */
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
    const own = (name: string) => fields.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
    const others = fields.filter((each) => !/^(up|down|(rtt|enter|leave)=.*)$/s.test(each));
    return {
      cca: said.cca as string,
      count: Number(said.count ?? 1),
      up: fields.includes("up"),
      rtt: own("rtt"),
      enter: own("enter"),
      leave: own("leave"),
      fields: others.map((each) => `~${each}`).join(""),
      start: said.start ?? "",
      stop: said.stop ?? "",
    };
  });
  return groups.every((each) => each !== null) ? groups : null;
}

/** A group of one flow that begins with the path, over the whole of it. */
export function group(cca: string): Group {
  return { cca, count: 1, up: false, rtt: "", enter: "", leave: "", fields: "", start: "", stop: "" };
}

/** The text of groups. A stop needs a start. */
export function write(groups: readonly Group[]): string {
  return groups
    .map(({ cca, count, up, rtt, enter, leave, fields, start, stop }) => {
      const ends = `${enter ? `~enter=${enter}` : ""}${leave ? `~leave=${leave}` : ""}`;
      const where = `${up ? "~up" : ""}${rtt ? `~rtt=${rtt}` : ""}${fields}${ends}`;
      return `${cca}${count === 1 ? "" : `*${count}`}${where}${start || stop ? `@${start || "0s"}` : ""}${stop ? `-${stop}` : ""}`;
    })
    .join(",");
}
