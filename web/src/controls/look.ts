/**
 * How congestion controls are drawn: the same colour, dash and marker as in every figure of the project (`python/tcpscape/controls/palette.py`). One whose
 * colour another one here has takes a free one, as long as there is any. A control with
 * parameters (`cubic:hystart=off`) has a look of its own that none of the others has.
 */
import { computed } from "@preact/signals";
import type { Control } from "../server/contract";
import { start } from "../server/start";
import { state } from "../state/state";

/** A look for each label. */
export function looksOf(labels: readonly string[], controls: readonly Control[]): Map<string, Control> {
  const known = new Map(controls.map((each) => [each.name, each]));
  const own = apart(
    controls.filter((each) => labels.includes(each.name)),
    controls,
  );
  const taken = [...own.values()];
  const hues = new Set(taken.map((each) => each.colour));
  const spare = controls.filter((each) => !taken.includes(each));
  const ordered = [...spare.filter((each) => !hues.has(each.colour)), ...spare.filter((each) => hues.has(each.colour))];
  const others = labels.filter((label) => !known.has(label));
  const choice = ordered.length ? ordered : controls;
  return new Map(labels.map((label) => [label, own.get(label) ?? { ...(choice[others.indexOf(label) % choice.length] ?? GREY), name: label }]));
}

/** The known controls of a chart with their looks, each with a colour that none before it has while there is a free one. */
function apart(shown: readonly Control[], controls: readonly Control[]): Map<string, Control> {
  const looks = new Map<string, Control>();
  for (const each of shown) {
    const taken = [...looks.values()];
    const hues = new Set(taken.map(({ colour }) => colour));
    const isFree = ({ colour, marker }: Control) => taken.every((other) => other.colour !== colour || other.marker !== marker);
    const spare = controls.find(({ colour, dash }) => !hues.has(colour) && dash === each.dash) ?? [each, ...controls].find(isFree);
    const { colour, dash, marker } = (hues.has(each.colour) && spare) || each;
    looks.set(each.name, { ...each, colour, dash, marker });
  }
  return looks;
}

const GREY: Control = { name: "", colour: "#808080", dash: 0, marker: "o" };

/** The looks of the state's congestion controls, for use in views: `looks.value.get("cubic")?.colour`. */
export const looks = computed(() => looksOf(state.value.cca ?? [], start.value?.controls ?? []));

/** The look of one label. */
export function look(label: string): Control {
  return looks.value.get(label) ?? looksOf([label], start.value?.controls ?? []).get(label) ?? GREY;
}
