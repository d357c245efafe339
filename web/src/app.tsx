/** The whole page: a bar, the path at the left, the answer and one view at the right. */
import { signal } from "@preact/signals";
import { AnswerPanel } from "./answer/answer";
import { Banner } from "./connection/banner";
import { Chips } from "./controls/chips";
import { Check } from "./measure/check";
import { PathLine, PathPanel } from "./path/panel";
import { Presets } from "./presets/presets";
import { opened } from "./measure/opened";
import { go } from "./state/address";
import { option, state } from "./state/state";
import { Take } from "./take/take";
import { Icon, Tabs, Toasts } from "./ui";
import { VIEWS } from "./views";
import { WalkBox } from "./walks/box";

const view = option("view", VIEWS[0]?.id ?? "");
/** Whether the path is folded where it stands above the answer, on a narrow page. */
const isFolded = signal(true);

/** One headline for each context: of an opened measurement its own, of a mixture the shares; the answer about the sliders stands below then. */
export function App() {
  const shown = VIEWS.find((each) => each.id === view.value) ?? VIEWS[0];
  const hasOwnHeadline =
    (shown?.id === "measure" && opened.value !== null && opened.value.kind !== "setup") || (shown?.id === "mix" && Boolean(state.value.mix));
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
        <Presets />
        <Take />
      </header>
      <aside class={`aside${isFolded.value ? " folded" : ""}`} aria-label="Path">
        <button type="button" class="fold" aria-expanded={!isFolded.value} onClick={fold}>
          <span>
            <PathLine />
          </span>
          <Icon name="chevron" />
        </button>
        <PathPanel />
      </aside>
      <main class="main" id="main" tabIndex={-1}>
        <Banner />
        <Chips />
        {!hasOwnHeadline && <AnswerPanel />}
        <Check />
        <WalkBox />
        {shown && (
          <Tabs label="Views" id="view" tabs={VIEWS} chosen={shown.id} onChoose={go}>
            <shown.View key={shown.id} />
          </Tabs>
        )}
        {hasOwnHeadline && <AnswerPanel isAside />}
      </main>
      <Toasts />
    </div>
  );
}

/** Folds or unfolds the path; unfolded on a narrow page it is a sheet, above which the plot stands then. */
function fold(): void {
  isFolded.value = !isFolded.value;
  if (!isFolded.value) requestAnimationFrame(() => document.querySelector(".main .plot")?.scrollIntoView());
}

/** The fragment of the address is the page's state, so the link moves the focus by itself. */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
