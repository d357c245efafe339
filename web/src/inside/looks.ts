/** The look of a congestion control's label. */
import type { Look } from "../charts/description";
import { start } from "../server/start";

const GREY: Look = { colour: "#808080", dash: 0, marker: "o" };

export function lookOf(label: string): Look {
  const name = label.split(":")[0] ?? label;
  return start.value?.controls.find((each) => each.name === label) ?? start.value?.controls.find((each) => each.name === name) ?? GREY;
}
