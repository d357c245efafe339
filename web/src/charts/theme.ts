/** The colours of the page as charts need them, light or dark as the reader's system is. */
import { signal } from "@preact/signals";
import type { Theme } from "./draw";

const FALLBACK: Theme = { ground: "#ffffff", ink: "#1d2125", soft: "#5a6570", line: "#d5dade" };
const DARK = "(prefers-color-scheme: dark)";

/** The theme now; plots draw again when it changes. */
export const theme = signal<Theme>(FALLBACK);

if (typeof document !== "undefined") {
  read();
  matchMedia(DARK).addEventListener("change", () => requestAnimationFrame(read));
  // Styles may come after this module.
  window.addEventListener("load", read);
}

function read(): void {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: keyof Theme) => style.getPropertyValue(`--${name}`).trim() || FALLBACK[name];
  const now = { ground: colour("ground"), ink: colour("ink"), soft: colour("soft"), line: colour("line") };
  if (JSON.stringify(now) !== JSON.stringify(theme.peek())) theme.value = now;
}
