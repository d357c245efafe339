/** The grammar of a mixture, `CCA[*COUNT][@START[-STOP]],…` as in `cubic*2,bbr@5s-8s` (`scenario/flows.py`). */
export interface Group {
  cca: string;
  count: number;
  /** When its flows connect and stop, as text; empty is the start, the end. */
  start: string;
  stop: string;
}

const PART = /^([^:*@\s]+(?::[^*@\s]+)?)(?:\*([0-9]{1,9}))?(?:@([^-\s]+)(?:-(\S+))?)?$/;

/** The groups of a text; null where a part of it does not follow the grammar. */
export function parse(text: string): Group[] | null {
  if (!text.trim()) return [];
  const groups = text.split(",").map((part) => {
    const match = PART.exec(part.trim());
    return match && { cca: match[1] as string, count: Number(match[2] ?? 1), start: match[3] ?? "", stop: match[4] ?? "" };
  });
  return groups.every((each) => each !== null) ? groups : null;
}

/** The text of groups. A stop needs a start. */
export function write(groups: readonly Group[]): string {
  return groups
    .map(({ cca, count, start, stop }) => `${cca}${count === 1 ? "" : `*${count}`}${start || stop ? `@${start || "0s"}` : ""}${stop ? `-${stop}` : ""}`)
    .join(",");
}
