/** The button of "Take it along"; its dialog is loaded when it is first opened. */
import { signal } from "@preact/signals";
import { Button, Icon, lazy } from "../ui";

export const isOpen = signal(false);
const Shown = lazy(() => import("./dialog").then((m) => m.TakeDialog));

export function Take() {
  return (
    <>
      <Button kind="quiet" icon={<Icon name="download" />} onClick={() => (isOpen.value = true)}>
        Take it along
      </Button>
      {isOpen.value && <Shown />}
    </>
  );
}
