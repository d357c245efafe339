/**
 * A choice from a short list, with its name before or above it.
 *
 *     <Select label="Axis" value={axis.value} choices={["rtt", "loss"]} onChoose={(value) => choose("curves.axis", value)} />
 *     <Select label="Queue" value={queue} choices={[{ value: "", title: "FIFO" }, { value: "fq_codel", title: "FQ-CoDel" }]} onChoose={set} />
 */
export interface Choice {
  value: string;
  title: string;
  /** A heading under which neighbouring choices stand together. */
  group?: string;
}

interface Props {
  label: string;
  value: string;
  choices: readonly (string | Choice)[];
  onChoose: (value: string) => void;
  disabled?: boolean;
  /** `row`: the name at the left and the list at the right, as a field of the path; `inline`: side by side, as in a toolbar. */
  layout?: "row" | "inline";
}

export function Select({ label, value, choices, onChoose, disabled, layout = "inline" }: Props) {
  const all: Choice[] = choices.map((each) => (typeof each === "string" ? { value: each, title: each } : each));
  // A value that is not in the list is shown as it is: nothing that was typed, or stands in an address, is lost.
  if (!all.some((each) => each.value === value)) all.push({ value, title: value });
  const groups = [...new Set(all.map((each) => each.group ?? ""))];
  const options = (group: string) =>
    all
      .filter((each) => (each.group ?? "") === group)
      .map((each) => (
        <option key={each.value} value={each.value}>
          {each.title}
        </option>
      ));
  return (
    <label class={`select ${layout}`}>
      <span class="name">{label}</span>
      <select value={value} disabled={disabled} onChange={(event) => onChoose(event.currentTarget.value)}>
        {groups.map((group) => (group ? <optgroup key={group} label={group} children={options(group)} /> : options("")))}
      </select>
    </label>
  );
}
