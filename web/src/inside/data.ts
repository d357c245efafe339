/** The blocks of the questions `inside` and `detail` as runs. */
import type { Block } from "../server/blocks";

export interface FlowNumbers {
  cca: string;
  goodput_mbps: number;
  start_s: number;
  stop_s: number;
  retransmits: number | null;
  rtos: number | null;
  fast_recoveries: number | null;
  undos: number | null;
}

/** A change of the path as the server understood it. */
export interface PathChange {
  at_s: number;
  where: string;
  set: Record<string, unknown>;
  /** Of a drop of the bottleneck's rate: how high the delay must rise. */
  bound: { ratio: number; d_s: number; spike_s: number; unlimited_s: number; text: string } | null;
}

export interface Flow {
  flow: number;
  cca: string;
  columns: Record<string, Float32Array>;
}

export interface EventKind {
  name: string;
  title: string;
  about: string;
}

export interface Run {
  run: number;
  cca: string;
  pinned: boolean;
  seed: number;
  rtt_s: number;
  duration_s: number;
  interval_s: number;
  numbers: FlowNumbers[];
  changes: PathChange[];
  caveats: string[];
  flows: Flow[];
  queue: { kind: string; rate_bps: number; limit_packets: number | null; limit_bytes: number | null; columns: Record<string, Float32Array> } | null;
  kinds: EventKind[];
  marks: Record<string, Float32Array>;
}

/** The runs whose marks have come, which are sent last. */
export function collect(blocks: readonly Block[]): Run[] {
  const runs = new Map<number, Run>();
  const whole = new Set<number>();
  for (const { name, values, columns } of blocks) {
    const number = Number(values.run);
    const run = runs.get(number);
    if (name === "run")
      runs.set(number, { ...(values as unknown as Run), numbers: values.flows as FlowNumbers[], flows: [], queue: null, kinds: [], marks: {} });
    else if (!run) continue;
    else if (name === "series")
      run.flows.push({ flow: Number(values.flow), cca: String(values.cca), columns: columns as Record<string, Float32Array> });
    else if (name === "queue") run.queue = { ...(values as unknown as NonNullable<Run["queue"]>), columns: columns as Record<string, Float32Array> };
    else if (name === "marks") {
      run.kinds = values.kinds as EventKind[];
      run.marks = columns as Record<string, Float32Array>;
      whole.add(number);
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
