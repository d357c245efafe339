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
              <div class="begin">
                <Button onClick={() => go(walk, 1)} label={`${on ? "Begin again" : "Begin"}: ${walk.title}`}>
                  {on ? "Begin again" : "Begin"}
                </Button>
                <span class="note">{walk.steps.length} steps</span>
              </div>
            </li>
          );
        })}
      </ul>
    </>
  );
}
