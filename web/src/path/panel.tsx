/** The path: sliders and typed fields in groups, tc's words below them; all say the same. */
import "./path.css";
import { start } from "../server/start";
import type { State } from "../server/contract";
import { change, state } from "../state/state";
import { Disclosure, Field, Select, Switch, Toggle } from "../ui";
import { forget, path, slips, take, wrong } from "./agree";
import { quantityOf, type TextField } from "./fields";
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
        <Slider name="rtt" />
        <Slider name="jitter" />
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
        <Slider name="loss" />
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
        {now.loss_burst && now.loss_burst !== "1" && <Slider name="loss_burst" />}
      </section>
      <section>
        <h3>Bottleneck</h3>
        <Slider name="rate" />
        <Slider name="buffer" idle={!now.rate} />
        <Choose name="queue" label="Queue" idle={!now.rate} />
        <Toggle label="ECN" layout="row" on={now.ecn} onChange={(ecn) => change({ ecn })} />
      </section>
      <section>
        <h3>Hosts</h3>
        <Slider name="rcvbuf" />
        <Slider name="app" />
        <Slider name="duration" />
      </section>
      <Disclosure title="More fields">
        {() => (
          <>
            <Choose name="distribution" label="Jitter's distribution" idle={!now.jitter || now.order === "keep"} />
            <Choose name="jitter_on" label="Jitter on" idle={!now.jitter} />
            <Choose name="order" label="Jitter and order" idle={!now.jitter} />
            <Choose name="loss_on" label="Loss on" idle={!hasLoss} />
            <Slider name="limit" />
            <Choose name="forward_at" label="Data at" />
            <Choose name="reverse_at" label="ACKs at" />
            <Text name="read" label="Receiver reads" placeholder="16KiB/1ms" />
            <Text name="kernel" label="Kernel" placeholder="6.1" />
          </>
        )}
      </Disclosure>
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

function Slider({ name, idle }: { name: TextField; idle?: boolean }) {
  const of = quantityOf(name);
  if (!of) return null;
  const slip = slips.value[name];
  const fixed = isFixed(name);
  const set = (text: string) => {
    forget(name);
    change({ [name]: text } as Partial<State>);
  };
  return (
    <Field
      label={of.label}
      name={name}
      text={fixed ? (path.value?.says[name] ?? "") : (slip?.text ?? state.value[name])}
      slid={slip ? state.value[name] : undefined}
      scale={of.scale}
      placeholder={fixed ? "in tc's words" : of.placeholder}
      error={slip?.line}
      disabled={fixed || idle}
      onSlide={set}
      onText={(text) => void take(name, text, { [name]: text } as Partial<State>)}
    />
  );
}

function Text({ name, label, placeholder }: { name: TextField; label: string; placeholder: string }) {
  const slip = slips.value[name];
  return (
    <Field
      label={label}
      name={name}
      text={slip?.text ?? state.value[name]}
      placeholder={placeholder}
      error={slip?.line}
      onText={(text) => void take(name, text, { [name]: text } as Partial<State>)}
    />
  );
}

function Choose({ name, label, idle }: { name: TextField; label: string; idle?: boolean }) {
  const choices = start.value?.choices[name] ?? [];
  return (
    <Select
      label={label}
      layout="row"
      value={state.value[name]}
      choices={choices}
      disabled={isFixed(name) || Boolean(idle)}
      onChoose={(value) => change({ [name]: value, ...(name === "order" && value === "keep" ? { distribution: "" } : {}) } as Partial<State>)}
    />
  );
}

/** The path in one line, for where the panel is folded. */
export function PathLine() {
  return <>{path.value?.text ?? "Path"}</>;
}
