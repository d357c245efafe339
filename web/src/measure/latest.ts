/** The newest block of each name: what a question that goes on has sent before is not kept. */
import { useEffect } from "preact/hooks";
import type { Block } from "../server/blocks";
import type { Question } from "../server/question";

export type Latest = Partial<Record<string, Block>>;

/** Blocks from which on the old ones are let go. */
const MANY = 32;

/** The newest block of each name. */
export function latest(blocks: readonly Block[]): Latest {
  const found: Latest = {};
  for (const block of blocks) found[block.name] = block;
  return found;
}

/** The same of a question, which from then on keeps no more than these. */
export function newest(question: Question): Latest {
  const found = latest(question.blocks.value);
  if (question.blocks.value.length > MANY) {
    const kept = question.blocks.value.filter((block) => found[block.name] === block);
    queueMicrotask(() => {
      if (question.blocks.peek().length > MANY) question.blocks.value = kept;
    });
  }
  return found;
}

/** Forgets the answer when the component goes: the next thing that is opened has another one, and a capture's columns are large. */
export function useForgotten(question: Question): void {
  useEffect(
    () => () => {
      question.blocks.value = [];
    },
    [question],
  );
}
