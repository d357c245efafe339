/** What is wrong with a question about what is open, with the way out of a choice that does not fit it: an address may name any. */
import type { Question } from "../server/question";
import { options as chosen } from "../state/state";
import { Button, Status } from "../ui";

/** `options`: names of the options that the question has from the address. */
export function Failed({ question, options }: { question: Pick<Question<"measure" | "kept">, "error">; options: readonly string[] }) {
  const isChosen = options.some((name) => chosen.value[name]);
  const forget = () => {
    chosen.value = Object.fromEntries(Object.entries(chosen.peek()).filter(([name]) => !options.includes(name)));
  };
  return (
    <>
      <Status kind="problem">{question.error.value}</Status>
      {isChosen && <Button onClick={forget}>Back to what is shown by itself</Button>}
    </>
  );
}
