/** The grammar of a mixture, `CCA[*COUNT][~FIELD…][@START[-STOP]],…` as in `cubic*2~rtt=20ms,bbr~up@5s-8s` (`scenario/grammar.py`). */
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

const PART = /^((?:~\/)?[^:*@~\s]+(?::[^*@~\s]+)?)(?:\*([0-9]{1,9}))?((?:~[^~@]*)*)(?:@([^-@\s]+)(?:-([^@\s]+))?)?$/;

/** The groups of a text; null where a part of it does not follow the grammar. */
export function parse(text: string): Group[] | null {
  if (!text.trim()) return [];
  const groups = text.split(",").map((part) => {
    const match = PART.exec(part.trim());
    if (!match) return null;
    const fields = (match[3] ?? "").split("~").slice(1);
    const rtt = fields.find((each) => each.startsWith("rtt=")) ?? "";
    const others = fields.filter((each) => each !== "up" && each !== "down" && each !== rtt);
    return {
      cca: match[1] as string,
      count: Number(match[2] ?? 1),
      up: fields.includes("up"),
      rtt: rtt.replace("rtt=", ""),
      fields: others.map((each) => `~${each}`).join(""),
      start: match[4] ?? "",
      stop: match[5] ?? "",
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
