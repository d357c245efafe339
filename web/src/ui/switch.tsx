/**
 * One of two or three named states, all of them visible; arrow keys move between them.
 *
 *     <Switch label="Jitter" value={order} choices={[{ value: "", title: "reorders" }, { value: "keep", title: "keeps order" }]} onChoose={set} />
 *
 * `Toggle` is one thing that is on or off:
 *
 *     <Toggle label="ECN" on={state.value.ecn} onChange={(ecn) => change({ ecn })} />
 */
import { useId } from "preact/hooks";
import type { Choice } from "./select";

interface SwitchProps {
  label: string;
  value: string;
  choices: readonly Choice[];
  onChoose: (value: string) => void;
  disabled?: boolean;
  layout?: "row" | "inline";
}

export function Switch({ label, value, choices, onChoose, disabled, layout = "inline" }: SwitchProps) {
  const name = useId();
  return (
    <fieldset class={`switch ${layout}`} disabled={disabled}>
      <legend class="name">{label}</legend>
      <div class="choices">
        {choices.map((each) => (
          <label key={each.value} class="choice">
            <input type="radio" name={name} value={each.value} checked={each.value === value} onChange={() => onChoose(each.value)} />
            <span>{each.title}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ToggleProps {
  label: string;
  on: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
  layout?: "row" | "inline";
}

export function Toggle({ label, on, onChange, disabled, layout = "inline" }: ToggleProps) {
  return (
    <label class={`toggle ${layout}`}>
      <span class="name">{label}</span>
      <input type="checkbox" role="switch" checked={on} disabled={disabled} onChange={(event) => onChange(event.currentTarget.checked)} />
    </label>
  );
}
