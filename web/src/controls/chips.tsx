/** The congestion controls that are compared, as chips; each has its colour, dash and marker everywhere on the page. */
import "./controls.css";
import { useId, useRef, useState } from "preact/hooks";
import { lineOf, post } from "../server/post";
import { start } from "../server/start";
import type { PathDocument } from "../server/contract";
import { change, state } from "../state/state";
import { Button, Icon, refocus, Sample } from "../ui";
import { look } from "./look";

/** The ones that are offered as chips beside those in use. */
const OFFERED = ["cubic", "bbr", "reno", "bbr3"];

export function Chips() {
  const chosen = state.value.cca;
  const all = [...OFFERED, ...chosen.filter((label) => !OFFERED.includes(label))];
  const toggle = (label: string) => {
    const others = chosen.filter((each) => each !== label);
    if (others.length === chosen.length) change({ cca: [...chosen, label] });
    else if (others.length) change({ cca: others });
  };
  return (
    <section class="controls" aria-label="Congestion controls">
      <h2 class="hidden">Congestion controls</h2>
      {all.map((label) => {
        const on = chosen.includes(label);
        const about = start.value?.controls.find((each) => each.name === label.split(":")[0])?.about;
        return (
          <button
            key={label}
            type="button"
            class="chip"
            aria-pressed={on}
            disabled={Boolean(state.value.mix)}
            title={on && chosen.length === 1 ? "One congestion control stays" : about}
            onClick={() => toggle(label)}
          >
            <Sample look={look(label)} />
            {label}
          </button>
        );
      })}
      <Add />
      {state.value.mix && (
        <Button kind="quiet" icon={<Icon name="close" />} onClick={() => change({ mix: "" })}>
          Leave the mixture <span class="mixture">{state.value.mix}</span>
        </Button>
      )}
    </section>
  );
}

/** Any other control, with parameters if wanted: typed, with suggestions. */
function Add() {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const close = () => {
    setText("");
    setProblem("");
    setOpen(false);
    refocus(place.current);
  };
  const add = async () => {
    const label = text.trim();
    if (!label) return close();
    if (state.peek().cca.includes(label)) return setProblem(`${label} is there already`);
    try {
      const answer = await post<PathDocument>("path", { state: { ...state.peek(), cca: [...state.peek().cca, label] } });
      change({ cca: answer.state.cca });
      close();
    } catch (error) {
      setProblem(lineOf(error));
    }
  };
  const form = () => (
    <form
      class="add"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <label class="hidden" for={id}>
        Congestion control, with parameters if wanted
      </label>
      <input
        id={id}
        class="input"
        list={`${id}-all`}
        value={text}
        placeholder="westwood, cubic:hystart=off"
        spellcheck={false}
        autocomplete="off"
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        ref={(input) => {
          if (input && document.activeElement === document.body) input.focus();
        }}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && close()}
      />
      <datalist id={`${id}-all`}>
        {suggestions(text).map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <Button onClick={() => void add()}>Add it</Button>
      {problem && (
        <p class="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </form>
  );
  const button = () => (
    <Button kind="quiet" icon={<Icon name="add" />} onClick={() => setOpen(true)}>
      Add
    </Button>
  );
  return <div ref={place}>{open ? form() : button()}</div>;
}

/** Names, and behind a colon the parameters of the control that is named. */
function suggestions(text: string): string[] {
  const controls = start.value?.controls ?? [];
  const [name, parameter] = text.split(":", 2);
  if (parameter === undefined) return controls.map((each) => each.name);
  const of = controls.find((each) => each.name === name);
  return (of?.parameters ?? []).map((each) => `${name}:${each.name}=${each.values.startsWith("on") ? (each.default ? "off" : "on") : each.default}`);
}
