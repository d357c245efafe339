/** "Take it along": the link, the copies and the files of one run. */
import { signal, useSignal, useSignalEffect } from "@preact/signals";
import { FILES, type TakenTexts } from "../server/contract";
import { lineOf } from "../server/post";
import { options, state } from "../state/state";
import { Button, Dialog, Field, Icon, Select, Status, Switch, toast } from "../ui";
import { address, type Axes, copy, download, texts } from "./asking";
import { wantedRuns } from "../answer/answer";
import { isOpen } from "./take";
import "./take.css";

/** Trials of each point of a curve and of each cell of a map, where nothing else is chosen. */
const SEEDS = { curves: "10", map: "5" };
const RESOLUTION = "20";
const LANGUAGES = [
  { value: "command", title: "Command" },
  { value: "yaml", title: "YAML" },
  { value: "python", title: "Python" },
] as const;
const language = signal<keyof TakenTexts>("command");

/** Trials of each control that the answer has. */
const runs = () => String(wantedRuns.value);

/** The axes that the shown view varies, and the trials of each of its points. */
function varied(): { axes: string[]; seeds: string } {
  const chosen = options.value;
  const view = chosen.view ?? "curves";
  if (view === "map") return { axes: [chosen["map.x"] ?? "jitter", chosen["map.y"] ?? "rtt"], seeds: chosen["map.seeds"] ?? SEEDS.map };
  if (view === "curves") return { axes: [chosen["curves.axis"] ?? "jitter"], seeds: chosen["curves.seeds"] ?? SEEDS.curves };
  return { axes: [], seeds: runs() };
}

export function TakeDialog() {
  return (
    <Dialog title="Take it along" onClose={() => (isOpen.value = false)}>
      <div class="take">
        <Link />
        <Copies />
        <Files />
        <p class="note">Every chart has PNG, SVG and CSV of its own below it.</p>
      </div>
    </Dialog>
  );
}

function Link() {
  // The address follows the state a moment later, in an effect: reading both here writes it anew with them.
  void state.value;
  void options.value;
  return (
    <section aria-label="Link">
      <h3>Link to what is shown</h3>
      <p class="note">
        Path, controls and view are behind the #, the token is not in it: it opens in this browser, and behind the address of any other explorer.
      </p>
      <div class="text">
        <pre role="region" tabIndex={0} aria-label="The link">
          {address()}
        </pre>
        <CopyButton text={address()} what="link" />
      </div>
    </section>
  );
}

function Copies() {
  const along = useSignal(varied().axes.length > 0);
  const there = useSignal<TakenTexts | null>(null);
  const problem = useSignal("");
  const { axes, seeds } = along.value ? varied() : { axes: varied().axes, seeds: runs() };
  useSignalEffect(() => {
    void state.value;
    const shown = varied();
    const wanted: Axes = along.value ? Object.fromEntries(shown.axes.map((name) => [name, []])) : {};
    const resolution = Number(options.value["map.resolution"] ?? RESOLUTION);
    let isNewest = true;
    there.value = null; // what is not that of the choice cannot be copied
    texts({ seeds: along.value ? shown.seeds : runs(), axes: wanted, resolution }).then(
      (answer) => {
        if (!isNewest) return;
        there.value = answer;
        problem.value = "";
      },
      (error: unknown) => {
        if (isNewest) problem.value = lineOf(error);
      },
    );
    return () => (isNewest = false);
  });
  const text = there.value?.[language.value] ?? "";
  return (
    <section aria-label="The same runs">
      <h3>The same runs elsewhere</h3>
      <p class="note">
        Seeds 0 to {Number(seeds) - 1}, as {along.value ? "the view" : "the answer"} has them: the same seed gives the same run, to the last bit.
      </p>
      <div class="choices">
        <Switch label="As" value={language.value} choices={LANGUAGES} onChoose={(value) => (language.value = value as keyof TakenTexts)} />
        {axes.length > 0 && (
          <Select
            label="What"
            value={along.value ? "along" : "here"}
            choices={[
              { value: "along", title: `along ${axes.join(" and ")}, as shown` },
              { value: "here", title: "this path alone" },
            ]}
            onChoose={(value) => (along.value = value === "along")}
          />
        )}
      </div>
      {problem.value ? (
        <Status kind="problem">{problem.value}</Status>
      ) : (
        <div class="text">
          <pre class="code" role="region" tabIndex={0} aria-label={`As ${language.value}`} aria-busy={!text}>
            {text || "…"}
          </pre>
          <CopyButton text={text} what={language.value} />
        </div>
      )}
    </section>
  );
}

function Files() {
  const controls = state.value.mix ? [] : state.value.cca;
  const cca = useSignal(options.value["inside.controls"]?.split("|").find((each) => controls.includes(each)) ?? controls[0] ?? "cubic");
  const seed = useSignal(/^\d+$/.exec(options.value["inside.seed"] ?? "")?.[0] ?? "0");
  const busy = useSignal("");
  const problem = useSignal("");
  const wrong = /^\d{1,9}$/.test(seed.value) ? "" : "a whole number, 0 or more";
  const get = (kind: string) => {
    busy.value = kind;
    problem.value = "";
    download(kind, cca.value, Number(seed.value))
      .then(
        (name) => toast(`Saved ${name}`),
        (error: unknown) => (problem.value = lineOf(error)),
      )
      .finally(() => (busy.value = ""));
  };
  return (
    <section aria-label="One run as a file">
      <h3>One run as a file</h3>
      <div class="choices">
        {controls.length > 0 && <Select label="Control" value={cca.value} choices={controls} onChoose={(value) => (cca.value = value)} />}
        <Field label="Seed" text={seed.value} error={wrong || undefined} onText={(text) => (seed.value = text)} />
      </div>
      <ul class="files">
        {FILES.map(({ kind, title, note }) => (
          <li key={kind}>
            <Button icon={<Icon name="download" />} disabled={!!busy.value || !!wrong} onClick={() => get(kind)}>
              {title}
            </Button>
            <span class="note">{busy.value === kind ? "running …" : note}</span>
          </li>
        ))}
      </ul>
      {problem.value && <Status kind="problem">{problem.value}</Status>}
    </section>
  );
}

function CopyButton({ text, what }: { text: string; what: string }) {
  const onClick = async () =>
    toast((await copy(text)) ? `The ${what} is copied` : "The browser does not let this page copy; select the text instead", false);
  return <Button icon={<Icon name="copy" />} label={`Copy the ${what}`} disabled={!text} onClick={() => void onClick()} />;
}
