/** The path in tc's own words, beside the fields: whichever is changed, the other follows. */
import { change, state } from "../state/state";
import { Button, Field } from "../ui";
import { forget, type Part, PARTS, path, slips, take } from "./agree";

const TITLES: Record<Part, string> = { forward: "Data", bottleneck: "Bottleneck", reverse: "ACKs" };

export function Words() {
  const described = path.value;
  const own = state.value.words;
  const toFields = () => {
    PARTS.forEach((part) => forget(`words.${part}`));
    // What the words say goes into the fields as far as these can say it.
    const fields = Object.fromEntries(Object.entries(described?.says ?? {}).map(([name, text]) => [name, /^0[a-z%]*$/.test(text) ? "" : text]));
    change({ ...fields, words: {} });
  };
  return (
    <div class="words">
      {PARTS.map((part) => {
        const slip = slips.value[`words.${part}`];
        const derived = own[part] === undefined ? (described?.words[part] ?? "") : null;
        const set = (text: string) => {
          // Words that follow the fields become the path's own only where somebody wrote others.
          if (slip || text !== derived) void take(`words.${part}`, text, (now) => ({ words: { ...now.words, [part]: text || "none" } }));
        };
        return (
          <Field
            key={part}
            wide
            label={TITLES[part]}
            name={`words.${part}`}
            text={slip?.text ?? own[part] ?? derived ?? ""}
            placeholder="none"
            error={slip?.line}
            onText={set}
          />
        );
      })}
      {Object.keys(own).length > 0 && (
        <p class="note">
          The path is set by tc's words; the fields that they replace are not used. <Button onClick={toFields}>Back to the fields</Button>
        </p>
      )}
    </div>
  );
}
