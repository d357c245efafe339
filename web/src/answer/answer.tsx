/** The answer first: one sentence with its interval, updated as the runs come in. */
import { effect } from "@preact/signals";
import { question } from "../server/question";
import { state } from "../state/state";

const answer = question("answer");
effect(() => {
  if (state.value.rtt) answer.ask();
});

export function AnswerPanel() {
  const last = answer.blocks.value.at(-1);
  return (
    <section aria-label="Answer" aria-live="polite">
      <p>{answer.error.value || String(last?.values.text ?? "…")}</p>
    </section>
  );
}
