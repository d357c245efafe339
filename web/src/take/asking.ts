/** What the server hands out of the page's state: texts that run the same trials, and one run as a file. */
import { save } from "../charts/save";
import { page } from "../server/stream";
import { state } from "../state/state";

export interface Texts {
  command: string;
  yaml: string;
  python: string;
}

/** Axis → its levels as written; none is the server's own choice of levels. */
export type Axes = Record<string, string[]>;

/** The three texts of the state as it is now. Throws an Error whose message is the server's line. */
export async function texts(wanted: { seeds: string; axes: Axes; resolution: number }): Promise<Texts> {
  return (await (await post("take", { state: state.peek(), address: address(), ...wanted })).json()) as Texts;
}

/** Hands one run to the browser as a file of this kind. Throws an Error whose message is the server's line. */
export async function download(kind: string, cca: string, seed: number): Promise<string> {
  const answer = await post(`file/${kind}`, { state: state.peek(), cca, seed });
  const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? `run.${kind}`;
  save(name, await answer.blob());
  return name;
}

/** The page's address: the state is behind its `#`; the token is not in it. */
export function address(): string {
  return `${location.origin}${location.pathname}${location.hash}`;
}

/** Copies a text; false where the browser does not let us. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** The older way, for pages without access to the clipboard. */
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden";
  const dialog = document.querySelector("dialog[open]") ?? document.body;
  const focused = document.activeElement as HTMLElement | null;
  dialog.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}

async function post(name: string, body: Record<string, unknown>): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page, ...body }) });
  } catch {
    throw new Error("The server does not answer; it may have ended.");
  }
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as { text?: string };
  throw new Error(problem.text ?? `The server answers with ${answer.status}.`);
}
