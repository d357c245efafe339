/** The view of what is measured: a capture with its replay, results that are kept or land now, a scenario. */
import "./measure.css";
import { useRef } from "preact/hooks";
import type { OpenedDocument } from "../server/contract";
import { Button, Icon, Progress, Status, Toolbar, Space } from "../ui";
import { Diagnosis } from "./diagnosis";
import { hovering } from "./drop";
import { Kept } from "./kept";
import { close, opened, problem, upload, uploading } from "./opened";

export function MeasureView() {
  const now = opened.value;
  return (
    <div class={`measure${hovering.value ? " hovering" : ""}`}>
      {now ? <Bar opened={now} /> : <Empty />}
      {uploading.value !== null && <Progress done={Math.round(100 * uploading.value)} all={100} label="% of the upload" />}
      {problem.value && <Status kind="problem">{problem.value}</Status>}
      {now?.kind === "measurement" && <Diagnosis key={now} opened={now} />}
      {now?.kind === "results" && <Kept key={now} opened={now} />}
      {now?.kind === "setup" && <Setup opened={now} />}
    </div>
  );
}

/** The button that chooses a file. */
function Choose({ main = false }: { main?: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const take = (files: FileList | null) => {
    if (files?.[0]) void upload(files[0]);
    if (input.current) input.current.value = "";
  };
  return (
    <>
      <input ref={input} type="file" hidden tabIndex={-1} aria-label="File to open" onChange={(event) => take(event.currentTarget.files)} />
      <Button kind={main ? "main" : "plain"} onClick={() => input.current?.click()}>
        {main ? "Open a file" : "Open another"}
      </Button>
    </>
  );
}

function Empty() {
  return (
    <section class="drop" aria-label="Open a measurement">
      <h2>Open a measurement, and see its path</h2>
      <p>
        Drop a file anywhere on this page: a capture (pcap, pcapng, also compressed), output of <code>ss -tin</code>, iperf3's JSON, a Flent file, the
        lines of <code>run --json</code>, a <code>results.sqlite</code>, or a scenario in YAML.
      </p>
      <Choose main />
      <p class="note">
        It stays on this machine. A result directory, also one that a running campaign writes, is opened with <code>tcpscape explore DIR</code>.
      </p>
    </section>
  );
}

function Bar({ opened }: { opened: OpenedDocument }) {
  return (
    <Toolbar label="What is open">
      <span class="what">
        <b>{opened.name}</b> <span class="note">{opened.kind === "setup" ? opened.about : ""}</span>
      </span>
      <Space />
      <Choose />
      <Button kind="quiet" icon={<Icon name="close" />} label="Close it" onClick={close} />
    </Toolbar>
  );
}

function Setup({ opened }: { opened: OpenedDocument }) {
  const axes = Object.entries(opened.axes ?? {});
  return (
    <section aria-label="What is open">
      <p>The sliders stand at its path{axes.length ? ", at the first level of each axis" : ""}.</p>
      <Remarks lines={opened.remarks ?? []} />
      {axes.length > 0 && (
        <dl class="axes">
          {axes.map(([name, levels]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{levels.length > 12 ? [...levels.slice(0, 5), "…", ...levels.slice(-2)].join(", ") : levels.join(", ")}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** What the sliders cannot say of a path that moved them. */
export function Remarks({ lines }: { lines: readonly string[] }) {
  if (!lines.length) return null;
  return <p class="note">The sliders cannot say everything: {lines.join("; ")}.</p>;
}
