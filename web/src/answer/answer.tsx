/** The answer first: one sentence with its interval, each congestion control's interval on one scale, and what it rests on. */
import "./answer.css";
import { effect, signal } from "@preact/signals";
import { look } from "../controls/look";
import { question } from "../server/question";
import { choose, option, state } from "../state/state";
import { Button, Disclosure, Progress, Sample } from "../ui";

interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  text: string;
}

interface Control extends Estimate {
  label: string;
  unit: string;
  delay: Estimate | null;
  side: "before" | "past" | "on" | null;
  side_text: string;
}

interface Answer {
  text: string;
  n: number;
  wanted: number;
  final: boolean;
  controls: Control[];
  decided: boolean;
  more: number | null;
  more_text: string;
  assumes: string[];
  caveats: string[];
}

const STANDARD_RUNS = 20;
const MOST_RUNS = 200;
const answer = question("answer");
const runs = option("runs", String(STANDARD_RUNS));
const SIDES = { before: "before its cliff", past: "past its cliff", on: "on its cliff" } as const;

effect(() => {
  const seeds = Math.round(Number(runs.value));
  if (state.value.rtt !== undefined) answer.ask({ seeds: seeds >= 1 && seeds <= MOST_RUNS ? seeds : STANDARD_RUNS });
});

/** The newest answer; an older one stays until the first run of the new one is over. */
const newest = signal<Answer | null>(null);
effect(() => {
  const last = answer.blocks.value.at(-1);
  if (last) newest.value = last.values as unknown as Answer;
});

export function AnswerPanel() {
  const now = newest.value;
  const isBusy = answer.status.value === "asked" || answer.status.value === "running";
  const stale = answer.status.value === "asked" ? " stale" : "";
  return (
    <section class={`answer${stale}`} aria-label="Answer">
      <h2 class="hidden">Answer</h2>
      <div class="said" aria-live="polite" aria-atomic="true">
        {answer.error.value ? <p class="problem">{answer.error.value}</p> : <p class="sentence">{now?.text ?? "The first runs are on their way …"}</p>}
      </div>
      <div class="runs-bar">{isBusy && <Progress done={now?.n ?? 0} all={now?.wanted ?? STANDARD_RUNS} label="runs" />}</div>
      {now && <Intervals controls={now.controls} />}
      <p class="foot">
        {now && <span>{now.n === 1 ? "1 run of each" : `${now.n} runs of each`}{now.n < now.wanted ? ` of ${now.wanted}` : ""}</span>}
        {now && !now.decided && now.final && (
          <span class="undecided">
            Undecided{now.more_text && `: ${now.more_text} would probably decide`}
            {now.more !== null && (
              <Button onClick={() => choose("runs", String(Math.min(MOST_RUNS, now.wanted + Math.max(5, now.more ?? 0))))}>Run them</Button>
            )}
          </span>
        )}
      </p>
      {now && (
        <Disclosure title={now.caveats.length ? `What it assumes, and ${now.caveats.length === 1 ? "a caveat" : `${now.caveats.length} caveats`}` : "What it assumes"}>
          {() => (
            <ul class="assumes">
              {now.assumes.map((line) => (
                <li key={line}>{line}</li>
              ))}
              {now.caveats.map((line) => (
                <li key={line} class="caveat">
                  Caveat: {line}
                </li>
              ))}
            </ul>
          )}
        </Disclosure>
      )}
    </section>
  );
}

/** Each congestion control's mean goodput with its interval, all on one scale from 0. */
function Intervals({ controls }: { controls: Control[] }) {
  const most = Math.max(...controls.map((each) => Math.max(each.high ?? 0, each.value ?? 0)), Number.MIN_VALUE);
  const at = (value: number) => `${(100 * Math.max(0, Math.min(value, most))) / most}%`;
  return (
    <ul class="intervals" aria-label="Mean goodput of each">
      {controls.map((each) => {
        const { colour } = look(each.label);
        const [low, high] = [each.low ?? each.value ?? 0, each.high ?? each.value ?? 0];
        return (
          <li key={each.label}>
            <span class="who">
              <Sample control={look(each.label)} /> {each.label}
            </span>
            <span class="scale" aria-hidden="true">
              <span class="whisker" style={{ left: at(low), width: `calc(${at(high)} - ${at(low)})`, background: colour }} />
              <span class="dot" style={{ left: at(each.value ?? 0), background: colour }} />
            </span>
            <span class="number">
              {each.text}
            </span>
            <span class={`side ${each.side ?? ""}`} title={each.side_text}>
              {each.side ? SIDES[each.side] : ""}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
