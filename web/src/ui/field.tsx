/**
 * A quantity as a slider and as text with its unit, always the same value. The text is taken when it is complete (Enter, or leaving the field); an error
 * stands one line below, and what was typed stays.
 *
 *     <Field label="RTT" text={state.value.rtt} scale={logScale({ kind: "time", low: "1ms", high: "1s" })} onSlide={(rtt) => change({ rtt })} onText={take} />
 *     <Field label="Buffer" text={text} placeholder="1bdp" error="buffer: unknown unit" onText={take} />     // without a slider
 *
 * `onSlide` is called at every movement of the slider, and once more when it is let go.
 */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Scale } from "./scale";

interface Props {
  label: ComponentChildren;
  text: string;
  /** Where the slider stands, if that is another text: the last good one while a wrong one is in the field. */
  slid?: string | undefined;
  onText: (text: string) => void;
  scale?: Scale | undefined;
  onSlide?: (text: string) => void;
  /** What stands in the empty field: the default, `no limit`. */
  placeholder?: string | undefined;
  /** What is wrong with what was typed; the text itself is kept by whoever has `text`. */
  error?: string | undefined;
  /** A line below the field that is no error. */
  note?: string | undefined;
  disabled?: boolean | undefined;
  /** A wide field, for words instead of a quantity, below its name. */
  wide?: boolean;
  name?: string;
}

export function Field({ label, text, slid = text, onText, scale, onSlide, placeholder, error, note, disabled, wide, name }: Props) {
  const id = useId();
  const [typed, type] = useState(text);
  const typing = useRef(false);
  // A value from elsewhere (slider, preset, tc's words) replaces the text, except while somebody writes into it.
  useEffect(() => {
    if (!typing.current) type(text);
  }, [text]);
  // What was typed is taken though it is what stood there: the value may have been refused for a reason that has passed.
  const done = (isMeant: boolean) => {
    typing.current = false;
    if (isMeant || typed.trim() !== text) onText(typed.trim());
  };
  const step = scale?.step(slid) ?? null;
  const last = scale?.last ?? 1;
  const below = error || note;
  const slide = (event: { currentTarget: HTMLInputElement }) => scale && onSlide?.(scale.text(Number(event.currentTarget.value)));
  return (
    <div class={`field${error ? " wrong" : ""}${wide ? " wide" : ""}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        class="text"
        type="text"
        name={name}
        value={typed}
        placeholder={placeholder}
        disabled={disabled}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        aria-invalid={error ? true : undefined}
        aria-describedby={below ? `${id}-below` : undefined}
        onInput={(event) => {
          typing.current = true;
          type(event.currentTarget.value);
        }}
        onKeyDown={(event) => event.key === "Enter" && done(true)}
        onBlur={() => done(typing.current)}
      />
      {scale && (
        <input
          class={step === null ? "slider away" : "slider"}
          type="range"
          min={0}
          max={last}
          step={1}
          value={step ?? 0}
          disabled={disabled}
          aria-label={typeof label === "string" ? label : name}
          aria-valuetext={step === null ? slid : scale.say(step)}
          style={{ "--at": String((step ?? 0) / last) }}
          onInput={slide}
          onChange={slide}
        />
      )}
      {below && (
        <p class="below" id={`${id}-below`} role={error ? "alert" : undefined}>
          {below}
        </p>
      )}
    </div>
  );
}
