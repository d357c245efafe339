/** The blocks of the question `mix`: shares of one run over time, and the verdict over the seeds. */
import type { Look, Series } from "../charts/description";
import type { Panel } from "../inside/stacker";
import type { Block } from "../server/blocks";
import type { Shares, Verdict } from "../server/contract";

export interface Sharing extends Shares {
  columns: Record<string, Float32Array>;
}

export function sharesOf(blocks: readonly Block<"mix">[]): Sharing | null {
  const block = blocks.find((each) => each.name === "shares");
  return block ? { ...block.values, columns: block.columns as Sharing["columns"] } : null;
}

export function verdictOf(blocks: readonly Block<"mix">[]): Verdict | null {
  return blocks.findLast((each) => each.name === "verdict")?.values ?? null;
}

/** One flow, how it is called and drawn: its control's colour, another dash for each further flow of the control. */
export interface Member {
  label: string;
  look: Look;
  goodput: Float32Array;
  mean_bps: number;
}

const OTHERS: Look = { colour: "#7a858f", dash: 0, marker: "o" };

export function members({ flows, columns, others }: Sharing, lookOf: (label: string) => Look): Member[] {
  const used = new Map<string, number>();
  const listed = flows.map(({ cca, direction, goodput_bps: mean_bps }, i) => {
    const place = used.get(cca) ?? 0;
    used.set(cca, place + 1);
    const { colour, dash, marker } = lookOf(cca);
    const label = `${cca}${flows.filter((each) => each.cca === cca).length > 1 ? ` ${place + 1}` : ""}${direction === "up" ? " up" : ""}`;
    return { label, look: { colour, marker, dash: (dash + place) % 4 }, goodput: columns[`flow.${i}`] ?? new Float32Array(0), mean_bps };
  });
  return columns.others ? [...listed, { label: `${others} more flows`, look: OTHERS, goodput: columns.others, mean_bps: NaN }] : listed;
}

/** Each member's share of what all carry, stacked from below: its ends, and the share itself. NaN where nobody carries anything. */
export function stacked(all: readonly Pick<Member, "goodput">[]): { low: Float32Array; high: Float32Array; share: Float32Array }[] {
  const n = all[0]?.goodput.length ?? 0;
  const sums = new Float32Array(n);
  for (const { goodput } of all) for (let i = 0; i < n; i += 1) sums[i] = (sums[i] as number) + (goodput[i] || 0);
  const below = new Float32Array(n);
  return all.map(({ goodput }) => {
    const low = below.slice();
    const share = new Float32Array(n);
    for (let i = 0; i < n; i += 1) {
      share[i] = sums[i] ? (goodput[i] || 0) / (sums[i] as number) : NaN;
      below[i] = (below[i] as number) + (share[i] as number);
    }
    return { low, high: below.slice(), share };
  });
}

/** The panels: shares as stacked areas, goodput of each flow, Jain's index. */
export function panelsOf(shares: Sharing, all: readonly Member[]): Panel[] {
  const { t = new Float32Array(0), jain = new Float32Array(0) } = shares.columns;
  const x = { title: "time", quantity: "time" } as const;
  const parts = stacked(all);
  const lines = (values: (i: number) => Float32Array): Series[] =>
    all.map(({ label, look }, i) => ({ label, look, x: t, y: values(i), width: 1.75 }));
  const whole = { title: "Share of the goodput", quantity: "share", from: 0, to: 1 } as const;
  return [
    {
      id: "shares",
      height: 150,
      chart: {
        title: "Share of each flow",
        x,
        y: whole,
        series: lines((i) => parts[i]?.high as Float32Array).map((each) => ({ ...each, width: 1 })),
      },
      areas: all.map(({ look }, i) => ({
        x: t,
        low: parts[i]?.low as Float32Array,
        high: parts[i]?.high as Float32Array,
        colour: look.colour,
        place: look.dash,
      })),
      readings: lines((i) => parts[i]?.share as Float32Array),
    },
    {
      id: "goodput",
      height: 120,
      chart: { title: "Goodput", x, y: { title: "Goodput", quantity: "rate" }, series: lines((i) => all[i]?.goodput as Float32Array) },
    },
    {
      id: "jain",
      height: 70,
      chart: {
        title: "Jain's index",
        x,
        y: { title: "of the flows that run", quantity: "number", from: 0, to: 1 },
        series: [{ label: "index", look: OTHERS, x: t, y: jain, width: 1.75 }],
      },
    },
  ];
}
