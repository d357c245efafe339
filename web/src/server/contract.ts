/** What the server and the page say to each other: by `scripts/page_contract.py` from the types in `python/tcpscape/web/`, which say what each is. */
export interface State {
  rtt: string;
  jitter: string;
  jitter_on: string;
  distribution: string;
  order: string;
  loss: string;
  loss_on: string;
  loss_burst: string;
  limit: string;
  forward_at: string;
  reverse_at: string;
  rate: string;
  buffer: string;
  queue: string;
  rcvbuf: string;
  app: string;
  read: string;
  ecn: boolean;
  duration: string;
  kernel: string;
  words: Record<string, string>;
  changes: string[];
  cca: string[];
  links: string[];
  transfers: string[];
  probes: string[];
  mix: string;
}

export interface StartDocument {
  opened: OpenedDocument | null;
  state: State;
  controls: Control[];
  fields: Record<string, PathField>;
  axes: AxisChoice[];
  presets: Preset[];
}

export interface OpenedDocument {
  kind: "measurement" | "results" | "setup";
  name: string;
  about: string;
  state?: State;
  remarks?: string[];
  axes?: Record<string, string[]>;
}

export interface Control {
  name: string;
  colour: string;
  dash: number;
  marker: string;
  about?: string;
  parameters?: Parameter[];
}

export interface Parameter {
  name: string;
  about: string;
  default: number;
  values: string;
}

export interface PathField {
  label: string;
  group: "Delay" | "Loss" | "Bursts" | "Bottleneck" | "Hosts" | "More";
  kind: "time" | "rate" | "share" | "size" | "buffer" | "byterate" | "number" | "choice" | "text";
  low: string;
  high: string;
  standard: string;
  zero_text: string;
  needs: string;
  choices: Choice[];
}

export interface Choice {
  value: string;
  title: string;
}

export interface AxisChoice {
  axis: string;
  title: string;
  quantity: "time" | "rate" | "share" | "size" | "number";
  log: boolean;
}

export interface Preset {
  group: string;
  id: string;
  title: string;
  note: string;
  source: string;
  state: Partial<State>;
}

export interface PathDocument {
  state: State;
  fixed: string[];
  says: Record<string, string>;
  words: Record<"forward" | "bottleneck" | "reverse", string>;
  text: string;
  notes: string[];
}

export interface DiagramDocument {
  wide: string;
  narrow: string;
}

export interface TakenTexts {
  command: string;
  yaml: string;
  python: string;
}

export interface EngineDocument {
  name: string;
  about: string;
  missing: string;
}

export interface AnswerValues {
  text: string;
  n: number;
  wanted: number;
  final: boolean;
  controls: ControlAnswer[];
  decided: boolean;
  more: number | null;
  more_text: string;
  assumes: string[];
  caveats: string[];
}

export interface ControlAnswer {
  value: number | null;
  low: number | null;
  high: number | null;
  label: string;
  text: string;
  side: "before" | "past" | "on" | null;
  side_text: string;
}

export interface CurveAxis {
  axis: string;
  title: string;
  quantity: "time" | "rate" | "share" | "size" | "number";
  log: boolean;
  here: number | null;
  text: string;
  note: string;
  words: string[];
  controls: string[];
}

export interface Progress {
  done: number;
  total: number;
}

export interface MapGrid {
  x: AxisDocument;
  y: AxisDocument;
  quantity: "ratio" | "retention" | "cv" | "goodput" | "rtt" | "delay" | "retransmissions";
  text: string;
  first: string;
  second: string;
}

export interface AxisDocument {
  axis: string;
  title: string;
  quantity: "time" | "rate" | "share" | "size" | "number";
  log: boolean;
  here: number | null;
  text: string;
  note: string;
  words: string[];
}

export interface MapProgress {
  done: number;
  total: number;
  seconds: number | null;
}

export interface RunValues {
  run: number;
  cca: string;
  pinned: boolean;
  seed: number;
  duration_s: number;
  interval_s: number;
  numbers: FlowNumbers[];
  bounds: SpikeBound[];
  caveats: string[];
}

export interface FlowNumbers {
  cca: string;
  goodput_mbps: number;
  retransmits: number | null;
  rtos: number | null;
  fast_recoveries: number | null;
  undos: number | null;
}

export interface SpikeBound {
  at_s: number;
  d_s: number;
  spike_s: number;
  text: string;
}

export interface SeriesValues {
  run: number;
  flow: number;
  cca: string;
}

export interface OfRun {
  run: number;
}

export interface MarksValues {
  run: number;
  kinds: EventDocument[];
}

export interface EventDocument {
  name: string;
  title: string;
  about: string;
}

export interface Shares {
  seed: number;
  flows: SharingFlow[];
  others: number;
  every_s: number;
}

export interface SharingFlow {
  cca: string;
  direction: string;
  start_s: number;
  stop_s: number;
  goodput_bps: number;
}

export interface Verdict {
  n: number;
  wanted: number;
  groups: GroupShare[];
  jain: Interval;
  jain_overlap: Interval;
  fair_after_s: Interval;
  became_fair: number;
  starved: number;
  caveats: string[];
}

export interface GroupShare {
  name: string;
  equal: number;
  whole: Interval;
  overlap: Interval;
}

export interface Interval {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface NetworkAnswer {
  n: number;
  wanted: number;
  sentences: string[];
  tables: ShownTable[];
  caveats: string[];
}

export interface ShownTable {
  title: string;
  columns: string[];
  rows: string[][];
  left: number;
}

export interface SourceValues {
  name: string;
  about: string;
  notes: string[];
  flows: SourceFlow[];
}

export interface SourceFlow {
  name: string;
  text: string;
  bytes: number | null;
  chosen: boolean;
}

export interface MeasureProgress {
  done: number;
  total: number;
  text: string;
}

export interface FlowValues {
  name: string;
  final: boolean;
  sentences: string[];
  title: string;
  rows: string[][];
  limits: Record<string, number>;
  missing: string[][];
  caveats: string[];
  changes: number[];
  levels: Record<string, Interval>;
  state: State | null;
  remarks: string[];
}

export interface ObservedValues {
  seconds: number;
}

export interface LimitsValues {
  causes: string[];
}

export interface ReplayValues {
  cca: string | null;
  text: string;
}

export interface KeptValues {
  path?: string;
  answer?: string;
  caveats?: string[];
  axes?: Record<string, string[]>;
  controls?: string[];
  ccas?: string[];
  axis?: string;
  at?: Record<string, string>;
  name: string;
  commands: string[];
  running: boolean;
  parts: KeptPartValues[];
  part: string;
}

export interface KeptPartValues {
  label: string;
  done: number;
  total: number;
  state: "finished" | "running" | "interrupted";
}

export interface KeptCells {
  columns: string[];
  rows: string[][];
  left: number;
  notes: string[];
  more: number;
}

export interface KeptState {
  state: State;
  remarks: string[];
  row: number;
}

export interface CheckValues {
  engine: string;
  kernel: string;
  done: number;
  total: number;
  rows: CheckRow[];
  text: string;
  caveats: string[];
}

export interface CheckRow {
  cca: string;
  model: CheckEstimate | null;
  real: CheckEstimate | null;
  ratio: CheckEstimate | null;
}

export interface CheckEstimate {
  value: number | null;
  low: number | null;
  high: number | null;
  text: string;
}

/** The blocks of each kind of question: the types of their values. */
export interface Blocks {
  answer: {
    answer: AnswerValues;
  };
  curve: {
    axis: CurveAxis;
    points: Record<string, never>;
    runs: Record<string, never>;
    progress: Progress;
  };
  map: {
    grid: MapGrid;
    cells: Record<string, never>;
    progress: MapProgress;
  };
  inside: {
    run: RunValues;
    series: SeriesValues;
    queue: OfRun;
    marks: MarksValues;
  };
  detail: {
    run: RunValues;
    series: SeriesValues;
    queue: OfRun;
    marks: MarksValues;
  };
  mix: {
    shares: Shares;
    verdict: Verdict;
  };
  network: {
    network: NetworkAnswer;
  };
  measure: {
    source: SourceValues;
    progress: MeasureProgress;
    flow: FlowValues;
    observed: ObservedValues;
    limits: LimitsValues;
    replay: ReplayValues;
    document: Record<string, unknown>;
  };
  kept: {
    kept: KeptValues;
    cells: KeptCells;
    state: KeptState;
    axis: CurveAxis;
    points: Record<string, never>;
    runs: Record<string, never>;
  };
  check: {
    check: CheckValues;
  };
}

/** The options of each kind of question. */
export interface Options {
  answer: {
    seeds?: number;
  };
  curve: {
    axis?: string;
    seeds?: number;
    levels?: string[];
  };
  map: {
    x?: string;
    y?: string;
    quantity?: "ratio" | "retention" | "cv" | "goodput" | "rtt" | "delay" | "retransmissions";
    first?: string;
    second?: string;
    resolution?: number;
    seeds?: number;
  };
  inside: {
    seed?: number;
    median?: boolean;
    controls?: string[];
    pinned?: State | null;
    samples?: number;
  };
  detail: {
    seed?: number;
    median?: boolean;
    controls?: string[];
    pinned?: State | null;
    samples?: number;
    start_s?: number;
    stop_s?: number;
  };
  mix: {
    seed?: number;
    seeds?: number;
  };
  network: {
    seeds?: number;
  };
  measure: {
    flow?: string;
    cca?: string;
    replay?: boolean;
    quick?: boolean;
    follow?: boolean;
  };
  kept: {
    part?: string;
    axis?: string;
    at?: Record<string, string>;
    cell?: number;
    follow?: boolean;
  };
  check: {
    engine?: string;
    seeds?: number;
  };
}

export const METRICS = [
  { name: "goodput", title: "Goodput", quantity: "rate" },
  { name: "rtt", title: "RTT", quantity: "time" },
  { name: "retransmissions", title: "Retransmissions", quantity: "share" },
  { name: "cv", title: "Variation of the goodput (CV)", quantity: "number" },
  { name: "delay", title: "Delay added, 95th percentile", quantity: "time" },
] as const;

export const QUANTITIES = {
  ratio: { title: "Ratio of two controls", quantity: "ratio", told: "{first} carries {value} {second}" },
  retention: { title: "Share that is left (retention)", quantity: "share", told: "{value} of the goodput of {first} is left" },
  cv: { title: "Variation (CV)", quantity: "number", told: "CV of {first} {value}" },
  goodput: { title: "Goodput", quantity: "rate", told: "{first} carries {value}" },
  rtt: { title: "RTT", quantity: "time", told: "RTT of {first} {value}" },
  delay: { title: "Delay added", quantity: "time", told: "{first} adds {value}" },
  retransmissions: { title: "Retransmissions", quantity: "share", told: "{first} sends {value} again" },
} as const;

export const FILES = [
  { kind: "pcapng", title: "pcapng", note: "every packet at the sender, for Wireshark" },
  { kind: "perfetto", title: "Perfetto trace", note: "windows, rates, queues and events over time, for ui.perfetto.dev" },
  { kind: "qlog", title: "qlog", note: "the same as QUIC's events, with packets, for qvis" },
  { kind: "csv", title: "CSV", note: "a row for each sample of each flow" },
] as const;

export const CAUSES = {
  application: { colour: "#009ede", pattern: "application" },
  "send buffer": { colour: "#674dce", pattern: "send_buffer" },
  "receive window": { colour: "#c280a2", pattern: "receive_window" },
  "congestion window": { colour: "#d68000", pattern: "congestion_window" },
  pacing: { colour: "#1a7152", pattern: "pacing" },
  "loss recovery": { colour: "#b23b16", pattern: "recovery" },
  timeouts: { colour: "#b23b16", pattern: "timeout" },
  handshake: { colour: "#8a7a1f", pattern: "handshake" },
  "not identifiable": { colour: "#808080", pattern: "unknown" },
} as const;

export const UNITS = {
  time: { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 0.001, s: 1, sec: 1, min: 60, h: 3600, d: 86400 },
  rate: {
    bit: 1,
    kbit: 1000,
    mbit: 1000000,
    gbit: 1000000000,
    tbit: 1000000000000,
    "bit/s": 1,
    "kbit/s": 1000,
    "mbit/s": 1000000,
    "gbit/s": 1000000000,
    "b/s": 8,
    "kb/s": 8000,
    "mb/s": 8000000,
    "gb/s": 8000000000,
    "kib/s": 8192,
    "mib/s": 8388608,
    "gib/s": 8589934592,
  },
  size: { "": 1, b: 1, kb: 1000, mb: 1000000, gb: 1000000000, kib: 1024, mib: 1048576, gib: 1073741824, k: 1024, m: 1048576, g: 1073741824 },
  byterate: {
    bit: 0.125,
    kbit: 125,
    mbit: 125000,
    gbit: 125000000,
    tbit: 125000000000,
    "bit/s": 0.125,
    "kbit/s": 125,
    "mbit/s": 125000,
    "gbit/s": 125000000,
    "b/s": 1,
    "kb/s": 1000,
    "mb/s": 1000000,
    "gb/s": 1000000000,
    "kib/s": 1024,
    "mib/s": 1048576,
    "gib/s": 1073741824,
  },
  share: { "%": 0.01 },
  buffer: { bdp: 1 },
  number: { "": 1 },
} as const;

export const GRAMMAR = {
  change: "\\s*(?<where>[^@:]+?)(\\.(?<hop>\\d+))?\\s*@\\s*(?<at>[^:\\s]+)\\s*:\\s*(?<words>.+)",
  mix: "(?<cca>(?:~/)?[^:*@~\\s]+(?::[^*@~\\s]+)?)(?:\\*(?<count>[0-9]{1,9}))?(?<fields>(?:~[^~@]*)*)(?:@(?<start>[^-@\\s]+)(?:-(?<stop>[^@\\s]+))?)?",
} as const;

export const STATES = ["open", "disorder", "CWR", "recovery", "loss"];
