/** The place of a walk's sentences above the views; nothing where no walk is on. */
import { option } from "../state/state";
import { lazy } from "../ui";

const walk = option("learn.walk", "");
const Shown = lazy(() => import("./shown").then((m) => m.Shown));

export function WalkBox() {
  return walk.value ? <Shown /> : null;
}
