/** The path: sliders and typed fields. */
import { change, state } from "../state/state";

export function PathPanel() {
  return (
    <form aria-label="Path">
      <label>
        RTT <input value={state.value.rtt} onChange={(event) => change({ rtt: event.currentTarget.value })} />
      </label>
    </form>
  );
}
