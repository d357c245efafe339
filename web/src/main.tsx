import { render } from "preact";
import { App } from "./app";
import { agree } from "./path/agree";
import { begin } from "./server/start";
import "./styles.css";
import "./ui/ui.css";

const root = document.getElementById("app");

function show(here: HTMLElement): void {
  render(<App />, here);
  agree();
}

/** Where the page cannot begin, it says why and what to do. */
function sorry(here: HTMLElement, error: unknown): void {
  render(
    <main class="sorry">
      <h1>The explorer cannot begin</h1>
      <p role="alert">{error instanceof Error ? error.message : String(error)}</p>
    </main>,
    here,
  );
}

if (root)
  begin().then(
    () => show(root),
    (error: unknown) => sorry(root, error),
  );
