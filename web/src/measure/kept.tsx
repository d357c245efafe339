/** Results that are kept: the answer, the curve along an axis, every cell; it fills while another process runs the campaign. */
import { computed } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ChartExports } from "../charts/exports";
import { Plot } from "../charts/plot";
import { looksOf } from "../controls/look";
import { question } from "../server/question";
import { start } from "../server/start";
import { type KeptState, type KeptValues, METRICS, type OpenedDocument } from "../server/contract";
import { change, choose, option } from "../state/state";
import { Button, Disclosure, Progress, Select, Status, Toolbar, toast } from "../ui";
import { chartOf } from "../curves/chart";
import { gather } from "../curves/gather";
import { Diagnosis } from "./diagnosis";
import { Failed } from "./failed";
import { type Latest, newest, useForgotten } from "./latest";

const kept = question("kept");
const part = option("measure.part", "");
const axis = option("measure.axis", "");
const named = option("measure.metric", "");
const metric = computed(() => METRICS.find((each) => each.name === named.value) ?? METRICS[0]);

export function Kept({ opened }: { opened: OpenedDocument }) {
  const [at, stand] = useState<Record<string, string>>({});
  const [cell, openCell] = useState(-1);
  const [diagnosed, diagnose] = useState(false);
  useEffect(() => {
    kept.ask({ part: part.value, axis: axis.value, at, cell, follow: true });
    return () => kept.cancel();
  }, [opened, part.value, axis.value, at, cell]);
  useForgotten(kept);
  const blocks = newest(kept);
  const values = blocks.kept?.values;
  useMoved(blocks.state?.values, cell, () => openCell(-1));
  if (kept.status.value === "failed") return <Failed question={kept} options={["measure.part", "measure.axis"]} />;
  if (!values) return <Status kind="working">Reading …</Status>;
  return (
    <section aria-label="Results" aria-busy={values.running}>
      <Parts values={values} />
      <p class="first" aria-live="polite">
        {values.answer ?? "No run has finished yet."}
      </p>
      <p class="note">{values.path}</p>
      <Curve blocks={blocks} values={values} stand={(name, level) => stand({ ...at, [name]: level })} />
      <Cells blocks={blocks} open={openCell} />
      {(values.caveats ?? []).map((line) => (
        <p key={line} class="note">
          {line}.
        </p>
      ))}
      {values.commands.length > 0 && (
        <Disclosure title="How it was run">
          <pre>{values.commands.join("\n")}</pre>
        </Disclosure>
      )}
      {diagnosed ? <Diagnosis opened={opened} /> : <Button onClick={() => diagnose(true)}>Diagnose its flows</Button>}
    </section>
  );
}

/** Moves the sliders as soon as the scenario of the chosen cell is there. */
function useMoved(there: KeptState | undefined, cell: number, done: () => void): void {
  useEffect(() => {
    if (!there || there.row !== cell) return;
    change(there.state);
    toast(there.remarks.length ? `The sliders stand there, but for: ${there.remarks.join("; ")}` : "The sliders stand at this cell");
    done();
  }, [there, cell]);
}

function Parts({ values }: { values: KeptValues }) {
  const shown = values.parts.find((one) => one.label === values.part);
  const choices = values.parts.map((one) => ({ value: one.label, title: `${one.label || values.name}, ${one.done} runs` }));
  return (
    <>
      {values.parts.length > 1 && (
        <Toolbar label="Part">
          <Select label="Part" value={values.part} choices={choices} onChoose={(value) => choose("measure.part", value)} />
        </Toolbar>
      )}
      {shown?.state === "running" && (
        <div class="working">
          <Status kind="working">
            {shown.done} of {shown.total} runs have finished; another process runs the rest.
          </Status>
          <Progress done={shown.done} all={shown.total} label="runs" />
        </div>
      )}
      {shown?.state === "interrupted" && (
        <Status kind="problem">
          It was interrupted at {shown.done} of {shown.total} runs. The same command goes on from there.
        </Status>
      )}
    </>
  );
}

function Curve({ blocks, values, stand }: { blocks: Latest<"kept">; values: KeptValues; stand: (name: string, level: string) => void }) {
  const labels = values.controls ?? [];
  const looks = looksOf(values.ccas ?? [], start.value?.controls ?? []);
  const { axis: head, points, runs } = blocks;
  const chart = useMemo(() => {
    const found = gather([head, points, runs].filter((block) => block !== undefined));
    const look = (label: string) => looks.get(values.ccas?.[labels.indexOf(label)] ?? "") ?? { colour: "#888888", dash: 0, marker: "o" };
    return found && chartOf(found, null, metric.value, look, { bands: true, runs: true, log: false }, []);
  }, [head, points, runs, metric.value, labels.join()]);
  const axes = Object.keys(values.axes ?? {});
  if (!chart) return null;
  return (
    <figure>
      <Toolbar label="Curve">
        <Select
          label="Show"
          value={metric.value.name}
          choices={METRICS.map(({ name, title }) => ({ value: name, title }))}
          onChoose={(value) => choose("measure.metric", value)}
        />
        {axes.length > 1 && <Select label="against" value={values.axis ?? ""} choices={axes} onChoose={(value) => choose("measure.axis", value)} />}
        {Object.entries(values.at ?? {}).map(([name, level]) => (
          <Select key={name} label={name} value={level} choices={values.axes?.[name] ?? []} onChoose={(value) => stand(name, value)} />
        ))}
        <ChartExports name={`results-${metric.value.name}`} chart={chart} />
      </Toolbar>
      <Plot chart={chart} height={300} />
    </figure>
  );
}

function Cells({ blocks, open }: { blocks: Latest<"kept">; open: (row: number) => void }) {
  const { columns = [], rows = [], left = 1, notes = [], more = 0 } = blocks.cells?.values ?? {};
  if (!rows.length) return null;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Cells">
        <table>
          <caption class="hidden">Cells</caption>
          <thead>
            <tr>
              {columns.map((name, i) => (
                <th key={i} scope="col" class={i < left ? undefined : "n"}>
                  {name}
                </th>
              ))}
              <th scope="col">
                <span class="hidden">sliders</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                {row.map((text, j) => (
                  <td key={j} class={j < left ? undefined : "n"}>
                    {text}
                  </td>
                ))}
                <td>
                  <Button kind="quiet" label={`Move the sliders to ${row.slice(0, left).join(", ")}`} onClick={() => open(i)}>
                    sliders
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {[...notes, ...(more ? [`${more} more cells are not shown; tcpscape export has them`] : [])].map((line) => (
        <p key={line} class="note">
          {line}.
        </p>
      ))}
    </>
  );
}
