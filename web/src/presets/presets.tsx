/** Paths to begin with, and the way back to the first one. */
import { start } from "../server/start";
import { jump } from "../state/address";
import type { State } from "../server/contract";
import { change, choose, isNetwork, state } from "../state/state";
import { Button, Icon, Menu } from "../ui";

export function Presets() {
  const there = start.value;
  if (!there) return null;
  // The congestion controls stay, unless the preset names some: the path is what it is about.
  const take = (fields: Partial<State>) => {
    jump();
    change({ ...there.state, cca: state.peek().cca, ...fields });
    if (isNetwork(fields)) choose("view", "network");
  };
  const items = there.presets.map((each) => ({ group: each.group, title: each.title, note: each.note, onChoose: () => take(each.state) }));
  return (
    <>
      <Menu label="Presets" items={items} kind="quiet" side="right" />
      <Button kind="quiet" icon={<Icon name="reset" />} label="Reset the path" onClick={() => take({ cca: there.state.cca })} />
    </>
  );
}
