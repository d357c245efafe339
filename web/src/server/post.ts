/** A request that answers at once. */
import { page } from "./stream";

/** What the server says is wrong: the field, and a line with the problem and the fix. */
export class Refusal extends Error {
  constructor(
    readonly field: string,
    text: string,
  ) {
    super(text);
  }
}

/** The answer of `POST /api/NAME`. Throws a `Refusal` where the server refuses, a TypeError where it does not answer. */
export async function post<Answer>(name: string, body: Record<string, unknown>): Promise<Answer> {
  const answer = await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page, ...body }) });
  if (answer.ok) return (answer.status === 202 ? null : await answer.json()) as Answer;
  const said = (await answer.json().catch(() => ({}))) as { field?: string; text?: string };
  throw new Refusal(said.field ?? "", said.text ?? "the server refuses this");
}
