/**
 * A question of a view: `ask` sends the newest state and options, `blocks` has what came of it. Whatever is asked last is answered: while a request is on its
 * way, only the newest of those that follow is kept, and it is sent as soon as the request is over.
 */
import { signal, type Signal } from "@preact/signals";
import { state, unanswered } from "../state/state";
import type { Block, Kind } from "./blocks";
import type { Options } from "./contract";
import { post, Refusal } from "./post";
import { connection, lost, onBlock } from "./stream";

export type Status = "idle" | "asked" | "running" | "done" | "failed";

export interface Question<K extends Kind> {
  /** Blocks of the newest answer, in order; the old ones stay until the first new one is there. */
  readonly blocks: Signal<Block<K>[]>;
  readonly status: Signal<Status>;
  /** What is wrong with the state or the options, as a line; empty where nothing is. */
  readonly error: Signal<string>;
  /** Asks about the state as it is now. */
  ask(options: Options[K]): void;
  /** Ends the answer. */
  cancel(): void;
}

/** The question of this kind; a page has one of each. */
export function question<K extends Kind>(kind: K): Question<K> {
  const blocks = signal<Block<K>[]>([]);
  const status = signal<Status>("idle");
  const error = signal("");
  let generation = 0;
  let sending = false;
  let waiting: Options[K] | null = null;
  let last: Options[K] | null = null;
  let wasLost = false;

  onBlock(kind, (block) => {
    if (block.generation !== generation) return;
    if (block.name === "end") status.value = "done";
    else if (block.name === "error") {
      status.value = "failed";
      error.value = (block.values as { text: string }).text;
    } else {
      const one = block as unknown as Block<K>;
      blocks.value = status.value === "asked" ? [one] : [...blocks.value, one];
      status.value = "running";
      error.value = "";
    }
  });

  /** Ends what was asked before this generation; the server knows by it which questions come too late, and which newer ones go on. */
  function end(): void {
    post("cancel", { kind, generation }).catch((problem) => problem instanceof Refusal || lost());
  }

  async function send(options: Options[K]): Promise<void> {
    sending = true;
    generation += 1;
    const mine = generation;
    status.value = "asked";
    try {
      await post("ask", { kind, generation, state: state.peek(), options });
    } catch (problem) {
      if (!(problem instanceof Refusal)) lost();
      else if (mine === generation && !waiting) {
        status.value = "failed";
        error.value = problem.message;
        if (problem.isPassing) unanswered();
      }
    }
    sending = false;
    if (waiting) {
      const next = waiting;
      waiting = null;
      void send(next);
    }
  }

  function ask(options: Options[K]): void {
    last = options;
    if (sending) waiting = options;
    else void send(options);
  }

  connection.subscribe((now) => {
    if (now === "open" && wasLost && last && status.peek() !== "done") ask(last);
    wasLost = now === "lost" || now === "refused";
  });

  return {
    blocks,
    status,
    error,
    ask,
    cancel() {
      generation += 1;
      last = waiting = null;
      status.value = "idle";
      end();
    },
  };
}
