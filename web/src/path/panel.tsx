/** The path: sliders and typed fields. */
import { change, state } from "../state/state";
import { Field, Switch } from "../ui";
import { type Quantity, QUANTITIES } from "./fields";

export function PathPanel() {
  const { rtt, jitter, loss, rate, buffer } = QUANTITIES;
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <Slider of={rtt} />
      <Slider of={jitter} />
      <Switch
        label="Jitter"
        layout="row"
        value={state.value.order === "" ? "reorder" : state.value.order}
        choices={[{ value: "reorder", title: "reorders" }, { value: "keep", title: "keeps order" }]}
        onChoose={(order) => change({ order })}
      />
      <Slider of={loss} />
      <Slider of={rate} />
      <Slider of={buffer} />
    </form>
  );
}

function Slider({ of }: { of: Quantity }) {
  const set = (text: string) => change({ [of.name]: text });
  return (
    <Field
      label={of.label}
      name={of.name}
      text={state.value[of.name]}
      scale={of.scale}
      placeholder={of.placeholder}
      disabled={of.ofRate && !state.value.rate}
      onSlide={set}
      onText={set}
    />
  );
}
