/** The path: sliders and typed fields in groups, tc's words below them; all say the same. */
import "./path.css";
import { start } from "../server/start";
import type { PathField, State } from "../server/contract";
import { change, state } from "../state/state";
import { Disclosure, Field, Select, Switch, Toggle, logScale, type Scale } from "../ui";
import { forget, path, slips, take, wrong } from "./agree";
import { Words } from "./words";

export function PathPanel() {
  const now = state.value;
  const order = now.order === "clamp" ? "clamp" : now.order === "keep" ? "keep" : "";
  const hasLoss = Boolean(now.loss);
  return (
    <form class="path" onSubmit={(event) => event.preventDefault()}>
      <h2 class="hidden">Path</h2>
      {wrong.value && <p class="wrong-line">{wrong.value}</p>}
      <section>
        <h3>Delay</h3>
        <Group of="Delay" />
        <Switch
          label="Does it reorder?"
          layout="row"
          value={order}
          disabled={isFixed("order") || !now.jitter}
          choices={[
            { value: "", title: "yes" },
            { value: "keep", title: "no" },
            ...(order === "clamp" ? [{ value: "clamp", title: "clamped" }] : []),
          ]}
          onChoose={(value) => change({ order: value, ...(value === "keep" ? { distribution: "" } : {}) })}
        />
      </section>
      <section>
        <h3>Loss</h3>
        <Group of="Loss" />
        <Switch
          label="How"
          layout="row"
          value={now.loss_burst && now.loss_burst !== "1" ? "bursty" : ""}
          disabled={isFixed("loss") || !hasLoss}
          choices={[
            { value: "", title: "independent" },
            { value: "bursty", title: "in bursts" },
          ]}
          onChoose={(value) => change({ loss_burst: value ? "5" : "" })}
        />
        {now.loss_burst && now.loss_burst !== "1" && <Group of="Bursts" />}
      </section>
      <section>
        <h3>Bottleneck</h3>
        <Group of="Bottleneck" />
        <Toggle label="ECN" layout="row" on={now.ecn} onChange={(ecn) => change({ ecn })} />
      </section>
      <section>
        <h3>Hosts</h3>
        <Group of="Hosts" />
      </section>
      <Disclosure title="More fields">{() => <Group of="More" />}</Disclosure>
      <Disclosure title="In tc's words" open={Object.keys(now.words).length > 0}>
        {() => <Words />}
      </Disclosure>
      {path.value?.notes.map((line) => (
        <p key={line} class="note">
          {line}.
        </p>
      ))}
    </form>
  );
}

/** Whether tc's words say this field. */
function isFixed(name: string): boolean {
  return path.value?.fixed.includes(name) ?? false;
}

/** The fields of a group, in the server's order. */
function Group({ of }: { of: PathField["group"] }) {
  const named = Object.entries(start.value?.fields ?? {}).filter(([, field]) => field.group === of);
  return (
    <>
      {named.map(([name, field]) =>
        field.kind === "choice" ? (
          <Choose key={name} name={name as TextField} field={field} />
        ) : (
          <Typed key={name} name={name as TextField} field={field} />
        ),
      )}
    </>
  );
}

/** Whether nothing reads this field now. */
function isIdle(name: TextField, { needs }: PathField): boolean {
  return Boolean(needs && !state.value[needs as TextField]) || (name === "distribution" && state.value.order === "keep");
}

function Typed({ name, field }: { name: TextField; field: PathField }) {
  const slip = slips.value[name];
  const fixed = isFixed(name);
  const set = (text: string) => {
    forget(name);
    change({ [name]: text } as Partial<State>);
  };
  return (
    <Field
      label={field.label}
      name={name}
      text={fixed ? (path.value?.says[name] ?? "") : (slip?.text ?? state.value[name])}
      slid={slip ? state.value[name] : undefined}
      scale={scaleOf(name, field)}
      placeholder={fixed ? "in tc's words" : field.zero_text || field.standard}
      error={slip?.line}
      disabled={fixed || isIdle(name, field)}
      onSlide={set}
      onText={(text) => void take(name, text, { [name]: text } as Partial<State>)}
    />
  );
}

function Choose({ name, field }: { name: TextField; field: PathField }) {
  return (
    <Select
      label={field.label}
      layout="row"
      value={state.value[name]}
      choices={field.choices}
      disabled={isFixed(name) || isIdle(name, field)}
      onChoose={(value) => change({ [name]: value, ...(name === "order" && value === "keep" ? { distribution: "" } : {}) } as Partial<State>)}
    />
  );
}

/** Names of the state's fields that are one text. */
type TextField = { [Name in keyof State]: State[Name] extends string ? Name : never }[keyof State];
const scales = new Map<TextField, Scale>();

/** The scale of a field's slider, the same one each time; none where it has no slider. */
function scaleOf(name: TextField, { kind, low, high, standard, zero_text }: PathField): Scale | undefined {
  if (kind === "choice" || kind === "text") return undefined;
  const scale =
    scales.get(name) ?? logScale({ kind, low, high, standard, ...(zero_text ? { zero: "", zeroSaid: zero_text, zeroLast: !standard } : {}) });
  scales.set(name, scale);
  return scale;
}

/** The path in one line, for where the panel is folded. */
export function PathLine() {
  return <>{path.value?.text ?? "Path"}</>;
}
