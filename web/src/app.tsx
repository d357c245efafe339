import { AnswerPanel } from "./answer/answer";
import { PathPanel } from "./path/panel";
import { choose, option } from "./state/state";
import { VIEWS } from "./views";

const view = option("view", VIEWS[0]?.id ?? "");

/** The whole page: the path beside the answer and one view. */
export function App() {
  const shown = VIEWS.find((each) => each.id === view.value) ?? VIEWS[0];
  return (
    <>
      <PathPanel />
      <main>
        <AnswerPanel />
        <div role="tablist">
          {VIEWS.map((each) => (
            <button key={each.id} role="tab" aria-selected={each === shown} onClick={() => choose("view", each.id)}>
              {each.title}
            </button>
          ))}
        </div>
        {shown && <shown.View />}
      </main>
    </>
  );
}
