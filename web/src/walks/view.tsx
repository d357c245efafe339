/** The view `learn`: the guided walks to choose from. */
import { Button } from "../ui";
import { go, here, WALKS } from "./walk";
import "./walks.css";

export function LearnView() {
  return (
    <>
      <p class="lead">Six short walks. Each step moves the sliders and shows one view; move them yourself at any time, the walk waits.</p>
      <ul class="walks">
        {WALKS.map((walk) => {
          const on = here.value?.walk === walk;
          return (
            <li key={walk.id} class={on ? "on" : ""}>
              <h3>{walk.title}</h3>
              <p>{walk.about}</p>
              <Button onClick={() => go(walk, 1)}>
                {on ? "Begin again" : "Begin"}
                <span class="hidden">: {walk.title}</span>, {walk.steps.length} steps
              </Button>
            </li>
          );
        })}
      </ul>
    </>
  );
}
