/** The blocks of the questions `inside` and `detail` as runs. */
import type { Block } from "../server/blocks";
import type { EventDocument, RunValues, SeriesValues } from "../server/contract";

type Columns = Record<string, Float32Array>;

export interface Flow extends SeriesValues {
  columns: Columns;
}

export interface Run extends RunValues {
  flows: Flow[];
  queue: Columns | null;
  kinds: EventDocument[];
  marks: Columns;
}

/** The runs whose marks have come, which are sent last. */
export function collect(blocks: readonly Block<"inside" | "detail">[]): Run[] {
  const runs = new Map<number, Run>();
  const whole = new Set<number>();
  for (const block of blocks) {
    const columns = block.columns as Columns;
    const run = runs.get(block.values.run);
    if (block.name === "run") runs.set(block.values.run, { ...block.values, flows: [], queue: null, kinds: [], marks: {} });
    else if (!run) continue;
    else if (block.name === "series") run.flows.push({ ...block.values, columns });
    else if (block.name === "queue") run.queue = columns;
    else {
      [run.kinds, run.marks] = [block.values.kinds, columns];
      whole.add(run.run);
    }
  }
  return [...runs.values()].filter((run) => whole.has(run.run)).sort((one, other) => one.run - other.run);
}

/** How many events of each kind a run has, by the kind's place. */
export function counts(run: Run): number[] {
  const sums = run.kinds.map(() => 0);
  const { kind, count } = run.marks;
  kind?.forEach((place, i) => (sums[place] = (sums[place] ?? 0) + (count?.[i] ?? 0)));
  return sums;
}
