/** A diagnosed flow: three sentences, the fitted path, what held it when, and the replay beside the observation. */
import { useEffect, useMemo } from "preact/hooks";
import { ChartExports } from "../charts/exports";
import type { Chart } from "../charts/description";
import { link } from "../charts/links";
import { Plot } from "../charts/plot";
import { save } from "../charts/save";
import { theme } from "../charts/theme";
import { format } from "../charts/units";
import { look } from "../controls/look";
import { question } from "../server/question";
import { start } from "../server/start";
import { CAUSES, type FlowValues, type OpenedDocument, type SourceValues } from "../server/contract";
import { change, option, choose } from "../state/state";
import { Button, DataTable, Disclosure, Progress, Select, Status, Table, Toolbar, Space, toast } from "../ui";
import { figures, type Held, held } from "./figures";
import { Failed } from "./failed";
import { type Latest, newest, useForgotten } from "./latest";
import { Remarks } from "./view";

const measure = question("measure");
const flow = option("measure.flow", "");
const control = option("measure.cca", "");
/** A control of the model that no sender has. */
const NO_SENDERS = "fixed";

/** `opened`: a measurement, or results whose flows are diagnosed. */
export function Diagnosis({ opened }: { opened: OpenedDocument }) {
  useEffect(() => {
    measure.ask({ flow: flow.value, cca: control.value, follow: true });
    return () => measure.cancel();
  }, [opened, flow.value, control.value]);
  useForgotten(measure);
  useEffect(() => {
    link("measure").range.value = null;
  }, [opened, flow.value]);
  const blocks = newest(measure);
  const source = blocks.source?.values;
  const found = blocks.flow?.values;
  if (measure.status.value === "failed") return <Failed question={measure} options={["measure.flow", "measure.cca"]} />;
  return (
    <section aria-label="Diagnosis" aria-busy={!found?.final}>
      {source && <Choices source={source} document={blocks.document?.values} />}
      <Working blocks={blocks} busy={!found?.final && !(source && !source.flows.length)} />
      {source && !source.flows.length && <p>There is no flow with data in it, so there is nothing to diagnose.</p>}
      {found && (
        <>
          <Sentences flow={found} />
          <Figures flow={found} blocks={blocks} />
          <div class="facts">
            <Table
              caption={found.title}
              columns={[
                { name: "what", text: true },
                { name: "value [95 %]", text: true },
                { name: "remark", text: true },
              ]}
              rows={() => found.rows.map((row) => row.map(onPage))}
            />
          </div>
          {found.missing.length > 0 && (
            <Disclosure title={`Not identifiable: ${found.missing.length}`}>
              <dl class="axes">
                {found.missing.map(([what, why]) => (
                  <div key={what}>
                    <dt>{what}</dt>
                    <dd>{why}</dd>
                  </div>
                ))}
              </dl>
            </Disclosure>
          )}
          {found.caveats.map((line) => (
            <p key={line} class="note">
              {line}.
            </p>
          ))}
        </>
      )}
    </section>
  );
}

function Choices({ source, document }: { source: SourceValues; document: Record<string, unknown> | undefined }) {
  const flows = source.flows.map((one) => ({ value: one.text, title: `${one.name}, ${megabytes(one.bytes)}` })).filter((one) => one.value);
  const known = (start.value?.controls ?? []).map((one) => one.name).filter((name) => name !== NO_SENDERS);
  const chosen = flow.value || source.flows.find((one) => one.chosen)?.text || "";
  return (
    <Toolbar label="Diagnosis">
      <span class="note">{source.about}</span>
      {flows.length > 1 && <Select label="Flow" value={chosen} choices={flows} onChoose={(value) => choose("measure.flow", value)} />}
      <Select
        label="Control"
        value={control.value}
        choices={[{ value: "", title: "as the packets show" }, ...known]}
        onChoose={(value) => choose("measure.cca", value)}
      />
      <Space />
      {document && (
        <Button kind="quiet" onClick={() => save("diagnosis.json", new Blob([JSON.stringify(document)], { type: "application/json" }))}>
          JSON
        </Button>
      )}
    </Toolbar>
  );
}

/** What is being done; its place stays when it is done. */
function Working({ blocks, busy }: { blocks: Latest<"measure">; busy: boolean }) {
  const { text = "", done = 0, total = 0 } = blocks.progress?.values ?? {};
  return (
    <div class="working">
      {busy && <Status kind="working">{text ? `${text} …` : "…"}</Status>}
      {busy && <Progress done={total ? done : 0} all={total || 1} label={text} />}
    </div>
  );
}

function Sentences({ flow }: { flow: FlowValues }) {
  const move = () => {
    if (!flow.state) return;
    change(flow.state);
    toast("The sliders stand at the fitted path");
  };
  return (
    <div class="sentences" aria-live="polite">
      {flow.sentences.map((text, i) => (
        <p key={i} class={i ? undefined : "first"}>
          {onPage(text)}
        </p>
      ))}
      {flow.state && (
        <p>
          <Button kind="main" onClick={move}>
            Move the sliders to this path
          </Button>
        </p>
      )}
      <Remarks lines={flow.remarks} />
    </div>
  );
}

function Figures({ flow, blocks }: { flow: FlowValues; blocks: Latest<"measure"> }) {
  const { observed, replay, limits } = blocks;
  const cca = replay?.values.cca ?? "";
  const ink = theme.value.soft;
  const charts = useMemo(
    () =>
      figures(observed, replay, flow.levels, {
        observed: { colour: ink, dash: 0, marker: "o" },
        replay: cca ? look(cca) : { colour: "#0072b2", dash: 0, marker: "o" },
      }),
    [observed, replay, JSON.stringify(flow.levels), ink, cca],
  );
  const marked = useMemo(() => charts.map((chart) => withMarks(chart, flow.changes)), [charts]);
  const seconds = observed?.values.seconds ?? 0;
  const intervals = useMemo(() => held(limits), [limits]);
  const shared = link("measure");
  return (
    <div class="figures">
      {intervals.length > 0 && <HeldBy intervals={intervals} shares={flow.limits} seconds={seconds} />}
      {marked.map((chart) => (
        <figure key={chart.title}>
          <figcaption>
            {chart.title}
            <ChartExports name={`measurement-${chart.title.toLowerCase().replaceAll(" ", "-")}`} chart={chart} shown={shared.range.value} />
          </figcaption>
          <Plot chart={chart} link={shared} height={190} />
        </figure>
      ))}
      {replay && <p class="note">{replay.values.text}. The band has all of them.</p>}
    </div>
  );
}

function withMarks(chart: Chart, changes: number[]): Chart {
  return changes.length
    ? { ...chart, marks: changes.map((at, i) => ({ id: `change-${i}`, at, label: i ? "" : "the path changed", kind: "event" as const })) }
    : chart;
}

/** A strip with what held the flow when, and the shares of the whole time. */
function HeldBy({ intervals, shares, seconds }: { intervals: Held[]; shares: Record<string, number>; seconds: number }) {
  const [from, to] = link("measure").range.value ?? [0, seconds];
  const place = (at: number) => `${(100 * (Math.min(Math.max(at, from), to) - from)) / Math.max(1e-9, to - from)}%`;
  const wide = (one: Held) => `${(100 * (Math.min(one.end, to) - Math.max(one.begin, from))) / Math.max(1e-9, to - from)}%`;
  const shown = intervals.filter((one) => one.end > from && one.begin < to);
  const used = [...new Set(intervals.map((one) => one.cause))];
  const total = intervals.reduce((sum, one) => sum + one.end - one.begin, 0);
  const share = (cause: string) =>
    intervals.filter((one) => one.cause === cause).reduce((sum, one) => sum + one.end - one.begin, 0) / Math.max(1e-9, total);
  return (
    <figure class="held">
      <figcaption>Limited by</figcaption>
      <div
        class="strip"
        role="img"
        aria-label={Object.entries(shares)
          .map(([cause, part]) => `${cause.replaceAll("_", " ")} ${percent(part)}`)
          .join(", ")}
      >
        {shown.map((one, i) => (
          <span
            key={i}
            class={`stretch ${kindOf(one.cause).pattern}`}
            title={one.cause}
            style={{ left: place(one.begin), width: wide(one), backgroundColor: kindOf(one.cause).colour }}
          />
        ))}
      </div>
      <ul class="causes">
        {used.map((cause) => (
          <li key={cause}>
            <span class={`stretch ${kindOf(cause).pattern}`} style={{ backgroundColor: kindOf(cause).colour }} /> {cause} {percent(share(cause))}
          </li>
        ))}
      </ul>
      <DataTable
        caption="What held the flow when"
        columns={[
          { name: "from", unit: "s" },
          { name: "for", unit: "s" },
          { name: "limited by", text: true },
        ]}
        rows={() => intervals.map((one) => [one.begin, one.end - one.begin, one.cause])}
      />
    </figure>
  );
}

/** Colour and pattern of a cause: no other one has its pattern, so that colour is never the only sign. */
function kindOf(cause: string): { colour: string; pattern: string } {
  return CAUSES[cause as keyof typeof CAUSES];
}

/** A sentence of the command line as the page says it: its option is the choice above. */
function onPage(text: string): string {
  return text.replaceAll("(--cca)", "(“Control”, above)").replaceAll("with --cca", "with “Control”, above,");
}

function percent(share: number): string {
  return share > 0 && share < 0.01 ? "< 1 %" : `${Math.round(100 * share)} %`;
}

function megabytes(bytes: number | null): string {
  return bytes === null ? "no bytes counted" : format(bytes, "size");
}
