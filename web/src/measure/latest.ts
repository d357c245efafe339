/** The newest block of each name: what a question that goes on has sent before is not kept. */
import { useEffect } from "preact/hooks";
import type { Block, Kind, Named } from "../server/blocks";
import type { Blocks } from "../server/contract";
import type { Question } from "../server/question";

export type Latest<K extends Kind> = { [Name in keyof Blocks[K]]?: Named<K, Name> };

/** Blocks from which on the old ones are let go. */
const MANY = 32;

/** The newest block of each name. */
export function latest<K extends Kind>(blocks: readonly Block<K>[]): Latest<K> {
  return Object.fromEntries(blocks.map((block) => [block.name, block])) as Latest<K>;
}

/** The same of a question, which from then on keeps no more than these. */
export function newest<K extends Kind>(question: Question<K>): Latest<K> {
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
export function useForgotten<K extends Kind>(question: Question<K>): void {
  useEffect(
    () => () => {
      question.blocks.value = [];
    },
    [question],
  );
}
