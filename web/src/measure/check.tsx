/** "Check on the real kernel": the state as it is, on a kernel and on the model, side by side. */
import "./measure.css";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { EngineDocument } from "../server/contract";
import { lineOf, post } from "../server/post";
import { question } from "../server/question";
import { option, choose, state } from "../state/state";
import { Button, Disclosure, Progress, Select, Status, Toolbar, Table } from "../ui";
import { newest } from "./latest";

const check = question("check");
const engine = option("check.engine", "");
const seeds = option("check.seeds", "3");
const SEEDS = ["1", "3", "5", "10", "20"];

const engines = signal<EngineDocument[] | null>(null);
/** Why nobody knows which engines there are; empty where somebody does. */
const failed = signal("");
/** The state that the answer below is about. */
const checked = signal("");

async function look(): Promise<void> {
  try {
    engines.value = await post<EngineDocument[]>("engines", {});
  } catch (error) {
    failed.value = lineOf(error);
  }
}

export function Check() {
  return <Disclosure title="Check on the real kernel">{() => <Checking />}</Disclosure>;
}

function Checking() {
  useEffect(() => {
    void look();
  }, []);
  const all = engines.value;
  if (!all) return failed.value ? <Status kind="problem">{failed.value}</Status> : <Status kind="working">Looking for kernels …</Status>;
  const chosen = all.find((one) => one.name === engine.value) ?? all.find((one) => !one.missing) ?? all[0];
  const isBusy = check.status.value === "asked" || check.status.value === "running";
  const run = () => {
    checked.value = JSON.stringify(state.value);
    if (chosen) check.ask({ engine: chosen.name, seeds: Number(seeds.value) });
  };
  return (
    <section class="check" aria-label="Check on the real kernel">
      <Toolbar label="Check">
        <Select
          label="Kernel"
          value={chosen?.name ?? ""}
          choices={all.map((one) => ({ value: one.name, title: `${one.name}: ${one.about}` }))}
          onChoose={(value) => choose("check.engine", value)}
        />
        <Select label="Runs" value={seeds.value} choices={SEEDS} onChoose={(value) => choose("check.seeds", value)} />
        {isBusy ? (
          <Button onClick={() => check.cancel()}>Stop</Button>
        ) : (
          <Button disabled={Boolean(chosen?.missing)} onClick={run}>
            Run it
          </Button>
        )}
      </Toolbar>
      {chosen?.missing && <p class="note">It cannot run here: {chosen.missing}.</p>}
      <Result isBusy={isBusy} />
    </section>
  );
}

function Result({ isBusy }: { isBusy: boolean }) {
  const values = newest(check).check?.values;
  if (check.status.value === "failed") return <Status kind="problem">{check.error.value}</Status>;
  if (!values) return null;
  const isOld = checked.value !== JSON.stringify(state.value);
  return (
    <div aria-busy={isBusy} aria-live="polite">
      {isBusy && <Progress done={values.done} all={values.total} label="runs on the kernel" />}
      <p>{values.text}</p>
      {isOld && <p class="note">The sliders have moved since: this is the path before.</p>}
      <Table
        caption="Goodput, mean with its 95 % interval"
        columns={[
          { name: "control", text: true },
          { name: "model", unit: "Mbit/s" },
          { name: values.engine, unit: "Mbit/s" },
          { name: "kernel / model" },
        ]}
        rows={() => values.rows.map((row) => [row.cca, row.model?.text, row.real?.text, row.ratio?.text])}
      />
      <p class="note">Kernel: {values.kernel}</p>
      {values.caveats.map((line) => (
        <p key={line} class="note">
          {line}.
        </p>
      ))}
    </div>
  );
}
