/** A request that answers at once. */
import { page } from "./stream";

/** What the server says is wrong: the field, and a line with the problem and the fix. */
export class Refusal extends Error {
  constructor(
    readonly field: string,
    text: string,
    /** Whether the same may be taken a moment later: nothing is wrong with it, the server has too much to do or is not all there. */
    readonly isPassing = false,
  ) {
    super(text);
  }
}

/** HTTP statuses of a refusal that passes: too many requests, not available, no answer from behind a proxy. */
const PASSING = [429, 502, 503, 504];

/** The answer of `POST /api/NAME`. Throws a `Refusal` where the server refuses, a TypeError where it does not answer. */
export async function post<Answer>(name: string, body: Record<string, unknown>): Promise<Answer> {
  const answer = await request(name, body);
  return (answer.status === 202 ? null : await answer.json()) as Answer;
}

/** The same with the answer as it came, such as a file. */
export async function request(name: string, body: Record<string, unknown>): Promise<Response> {
  const answer = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ page, ...body }),
  });
  if (answer.ok) return answer;
  const refusal = (await answer.json().catch(() => ({}))) as { field?: string; text?: string };
  throw new Refusal(refusal.field ?? "", refusal.text ?? `The server answers with ${answer.status}.`, PASSING.includes(answer.status));
}

/** What went wrong with a request, as a line. */
export function lineOf(problem: unknown): string {
  return problem instanceof Refusal ? problem.message : "The server does not answer; it may have ended.";
}
