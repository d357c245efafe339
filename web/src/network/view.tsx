/** The view "Network": the path with its links, transfers and probes as a drawing, what each gets, and the texts that make it. */
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "../mix/mix.css";
import "./network.css";
import { Editor } from "../mix/editor";
import type { DiagramDocument, ShownTable } from "../server/contract";
import { lineOf, post } from "../server/post";
import { question } from "../server/question";
import { choose, state } from "../state/state";
import { jump } from "../state/address";
import { Button, Status } from "../ui";
import { EntryLists } from "./entries";

const asked = question("network");
const drawn = signal<DiagramDocument | null>(null);
const problem = signal("");

/** Asks and draws while the view is there. */
function follow(): () => void {
  let newest = {};
  const stop = effect(() => {
    const now = state.value;
    newest = now;
    asked.ask({ seeds: 5 });
    post<DiagramDocument>("diagram", { state: now }).then(
      (answer) => {
        if (newest !== now) return;
        drawn.value = answer;
        problem.value = "";
      },
      (error: unknown) => newest === now && (problem.value = lineOf(error)),
    );
  });
  return () => {
    stop();
    asked.cancel();
  };
}

export function NetworkView() {
  useEffect(follow, []);
  const there = asked.blocks.value.findLast((each) => each.name === "network")?.values ?? null;
  const isBusy = asked.status.value === "asked" || asked.status.value === "running";
  const wrong = asked.error.value || problem.value;
  return (
    <div class="network">
      {drawn.value && (
        <div class="network-drawing" onClick={edit}>
          <div class="on-wide" dangerouslySetInnerHTML={{ __html: drawn.value.wide }} />
          <div class="on-narrow" dangerouslySetInnerHTML={{ __html: drawn.value.narrow }} />
        </div>
      )}
      <div class="network-answer" aria-live="polite" aria-busy={isBusy}>
        {wrong && <Status kind="problem">{wrong}</Status>}
        {!wrong && (there?.sentences ?? []).map((each) => <p key={each}>{each}</p>)}
        <p class="note">{there ? `${there.n} of ${there.wanted} runs each.` : "\u00a0"}</p>
      </div>
      {there?.tables.map((each) => (
        <Shown key={each.title} of={each} />
      ))}
      {there?.caveats.map((each) => (
        <p class="note" key={each}>
          Note: {each}.
        </p>
      ))}
      {state.value.mix ? <Editor /> : <Flows />}
      <EntryLists />
    </div>
  );
}

/** Where the flows of a network are: one group for each congestion control, until there is a mixture. */
function Flows() {
  return (
    <p class="note">
      Each congestion control runs alone with its transfers and probes.{" "}
      <Button
        kind="quiet"
        onClick={() => {
          jump();
          choose("view", "mix");
        }}
      >
        Flows that share it
      </Button>
    </p>
  );
}

/** A place of the drawing that was clicked: the field that says it has the focus. */
function edit(event: MouseEvent): void {
  const name = (event.target as Element).closest("[data-field]")?.getAttribute("data-field");
  if (name) document.querySelector<HTMLElement>(`input.text[name="${name}"]`)?.focus();
}

function Shown({ of: { title, columns, rows, left } }: { of: ShownTable }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={title || "What each gets"}>
      <table>
        <caption>{title || "What each gets"}</caption>
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each} scope="col">
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k} class={k < left ? "" : "n"}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
