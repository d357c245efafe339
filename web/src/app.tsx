/** The whole page: a bar, the path at the left, the answer and one view at the right. */
import { AnswerPanel } from "./answer/answer";
import { Check } from "./measure/check";
import { PathPanel } from "./path/panel";
import { choose, option } from "./state/state";
import { Take } from "./take/take";
import { Tabs, Toasts } from "./ui";
import { VIEWS } from "./views";
import { WalkBox } from "./walks/box";

const view = option("view", VIEWS[0]?.id ?? "");

export function App() {
  const shown = VIEWS.find((each) => each.id === view.value) ?? VIEWS[0];
  return (
    <div class="page">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the answer
      </a>
      <header class="bar">
        <h1>
          tcpscape <span>explorer</span>
        </h1>
        <span class="space" />
        <Take />
      </header>
      <aside class="aside" aria-label="Path">
        <PathPanel />
      </aside>
      <main class="main" id="main" tabIndex={-1}>
        <AnswerPanel />
        <Check />
        <WalkBox />
        {shown && (
          <Tabs label="Views" id="view" tabs={VIEWS} chosen={shown.id} onChoose={(id) => choose("view", id)}>
            <shown.View key={shown.id} />
          </Tabs>
        )}
      </main>
      <Toasts />
    </div>
  );
}

/** The fragment of the address is the page's state, so the link moves the focus by itself. */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
