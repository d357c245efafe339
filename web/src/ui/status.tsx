/**
 * A line that says what is going on. `Status` stands in a view and keeps its height; `toast` shows a line above the page for some seconds, for what
 * has happened (`Copied`), and is read out.
 *
 *     <Status kind={question.status.value === "failed" ? "problem" : "working"}>{text}</Status>
 *     toast("The command is copied");
 *     <Progress done={120} all={400} label="points" />
 */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";

export function Status({ kind = "idle", children }: { kind?: "idle" | "working" | "problem"; children?: ComponentChildren }) {
  return (
    <p class={`status ${kind}`} role={kind === "problem" ? "alert" : undefined}>
      {kind === "problem" && <Icon name="warning" />}
      {children}
    </p>
  );
}

/** A thin bar with how much is done, in the place of its view's upper edge. */
export function Progress({ done, all, label }: { done: number; all: number; label: string }) {
  return <progress class="progress" value={done} max={Math.max(1, all)} aria-label={`${done} of ${all} ${label}`} />;
}

const shown = signal<{ text: string; problem: boolean }[]>([]);
const SECONDS = 4;

/** Shows a line for some seconds. */
export function toast(text: string, problem = false): void {
  const line = { text, problem };
  shown.value = [...shown.value.slice(-2), line];
  setTimeout(() => (shown.value = shown.value.filter((each) => each !== line)), SECONDS * 1000 * (problem ? 2 : 1));
}

/** The place of the toasts; the page has one. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((each, i) => (
        <div key={i} class={each.problem ? "toast problem" : "toast"}>
          <Icon name={each.problem ? "warning" : "check"} />
          <span>{each.text}</span>
        </div>
      ))}
    </div>
  );
}
