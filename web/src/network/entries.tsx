/** Links, transfers and probes as text, a field for each; what is wrong with one stands below it. */
import type { State } from "../server/contract";
import { forget, slips, take } from "../path/agree";
import { change, state } from "../state/state";
import { Button, Field, refocus, Status } from "../ui";

export type Entries = "links" | "transfers" | "probes";

const KINDS: { of: Entries; one: string; title: string; examples: string[] }[] = [
  { of: "links", one: "link", title: "Links behind the path", examples: ["delay 5ms rate 50mbit"] },
  { of: "transfers", one: "transfers", title: "Transfers", examples: ["20/s,30kB"] },
  { of: "probes", one: "probe", title: "Probes", examples: ["voice", "ping", "voice~up", "udp_ping", "scream"] },
];

export function EntryLists() {
  return (
    <>
      {KINDS.map((kind) => (
        <List key={kind.of} {...kind} />
      ))}
    </>
  );
}

function List({ of, one, title, examples }: (typeof KINDS)[number]) {
  const texts = state.value[of];
  const example = examples.find((each) => !texts.includes(each)) ?? (examples[0] as string);
  const next = `${of}.${texts.length}`;
  const put = (place: number, text: string) => (now: State) => ({ [of]: now[of].map((each, i) => (i === place ? text : each)) });
  const remove = (event: MouseEvent, place: number) => {
    refocus((event.currentTarget as Element).closest("section"));
    texts.forEach((_, i) => forget(`${of}.${i}`));
    change({ [of]: texts.filter((_, i) => i !== place) });
  };
  return (
    <section class="network-list">
      <h3>{title}</h3>
      {texts.map((text, place) => {
        const name = `${of}.${place}`;
        const slip = slips.value[name];
        return (
          <div class="network-row" key={place}>
            <Field
              wide
              label={`${one} ${place + 1}`}
              name={name}
              text={slip?.text ?? text}
              placeholder={example}
              error={slip?.line}
              onText={(typed) => void take(name, typed, put(place, typed || example))}
            />
            <Button kind="quiet" label={`Remove ${one} ${place + 1}`} onClick={(event) => remove(event, place)}>
              Remove
            </Button>
          </div>
        );
      })}
      <Button onClick={() => void take(next, example, (now) => ({ [of]: [...now[of], example] }))}>Add {one}</Button>
      {slips.value[next] && <Status kind="problem">{slips.value[next]?.line}</Status>}
    </section>
  );
}
