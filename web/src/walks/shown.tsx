/** A walk's sentences, with its steps: buttons, or the arrow keys while the box or nothing else has the focus. */
import { useEffect, useRef } from "preact/hooks";
import { Button, Icon } from "../ui";
import { go, here, leave, moved } from "./walk";
import "./walks.css";

const BY: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

export function Shown() {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const by = BY[event.key];
      const on = here.peek();
      const free = document.activeElement === document.body || box.current?.contains(document.activeElement);
      if (!by || !on || !free || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(on.walk, on.number + by);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  // The button of the list is gone with it: whoever used it goes on here, and the box is seen on narrow screens too.
  const at = here.value && `${here.value.walk.id} ${here.value.number}`;
  useEffect(() => {
    if (document.activeElement === document.body) box.current?.focus({ preventScroll: true });
    box.current?.scrollIntoView({ block: "nearest" });
  }, [at]);
  // The box goes with its buttons: the view that stays has the focus.
  const end = () => {
    leave();
    document.querySelector<HTMLElement>('[role="tab"][aria-selected="true"]')?.focus();
  };
  if (!here.value) return null;
  const { walk, number, step } = here.value;
  const last = number === walk.steps.length;
  return (
    <section class="walk" ref={box} tabIndex={-1} aria-label={`Walk: ${walk.title}`}>
      <header>
        <h2>{walk.title}</h2>
        <span class="place">
          Step {number} of {walk.steps.length}
        </span>
        <span class="space" />
        <Button kind="quiet" icon={<Icon name="close" />} label="End the walk" onClick={end} />
      </header>
      <p class="said" aria-live="polite">
        {step.text.join(" ")}
      </p>
      <footer>
        <Button disabled={number === 1} onClick={() => go(walk, number - 1)}>
          Previous
        </Button>
        <Button kind="main" onClick={() => (last ? end() : go(walk, number + 1))}>
          {last ? "End" : "Next"}
        </Button>
        {moved.value && (
          <Button kind="quiet" icon={<Icon name="undo" />} onClick={() => go(walk, number)}>
            Back to this step's path
          </Button>
        )}
      </footer>
    </section>
  );
}
