/** The table behind the sentence: shares against equal ones over the runs, Jain's index, and what is said of all flows. */
import { format, plain } from "../charts/units";
import type { Interval, Verdict } from "../server/contract";

const HEAD = ["flows", "share of whole transfers", "share while all run", "equal share", "while all run, in equal shares"];

export function Groups({ said }: { said: Verdict }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Shares over the runs">
        <table>
          <caption>Shares over {said.n} runs: means with 95 % intervals</caption>
          <thead>
            <tr>
              {HEAD.map((each) => (
                <th key={each} scope="col">
                  {each}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {said.groups.map(({ name, equal, whole, overlap }) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{text(whole, "share")}</td>
                <td>{text(overlap, "share")}</td>
                <td>{format(equal, "share")}</td>
                <td>{plain((overlap.value ?? whole.value ?? NaN) / equal)}</td>
              </tr>
            ))}
            <tr>
              <td>Jain's index</td>
              <td>{text(said.jain, "number")}</td>
              <td>{text(said.jain_overlap, "number")}</td>
              <td>1</td>
              <td />
            </tr>
          </tbody>
        </table>
      </div>
      {said.caveats.map((each) => (
        <p class="note" key={each}>
          Note: {each}.
        </p>
      ))}
      <p class="note">{[fairness(said), starvation(said)].join(" ")}</p>
    </>
  );
}

/** What the answer of the page does not say: how it is while all flows run. */
export function together({ groups, jain_overlap: jain }: Verdict): string {
  const known = groups.filter(({ overlap }) => overlap.value !== null);
  if (known.length < groups.length) return "The flows never run at the same time.";
  const order = [...known].sort((one, other) => (other.overlap.value as number) / other.equal - (one.overlap.value as number) / one.equal);
  const parts = order.map(
    ({ name, overlap, equal }) => `${name} ${text(overlap, "share")}, ${plain((overlap.value as number) / equal, 2)} × its equal share`,
  );
  return `While all of them run: ${parts.join("; ")}. Jain's index ${text(jain, "number")}.`;
}

function text({ value, low, high }: Interval, quantity: "share" | "number"): string {
  const size = quantity === "share" ? 100 : 1;
  const interval = low === null || high === null ? "" : ` [${plain(low * size)}, ${plain(high * size)}]`;
  return `${format(value ?? NaN, quantity)}${interval}`;
}

function fairness({ became_fair: share, fair_after_s: after }: Verdict): string {
  if (!share) return "In no run do the shares of each second stay within 0.1 of equal ones.";
  return `The shares of each second stay within 0.1 of equal ones after ${format(after.value ?? NaN, "time")} (median), in ${format(share, "share")} of the runs.`;
}

function starvation({ starved }: Verdict): string {
  return starved ? `A flow starves in ${format(starved, "share")} of the runs: it has less than a tenth of its fair share for five seconds.` : "";
}
