/** What the server hands out of the page's state: texts that run the same trials, and one run as a file. */
import { save } from "../charts/save";
import type { TakenTexts } from "../server/contract";
import { post, request } from "../server/post";
import { state } from "../state/state";

/** Axis → its levels as written; none is the server's own choice of levels. */
export type Axes = Record<string, string[]>;

/** The three texts of the state as it is now. Throws as `post` does. */
export function texts(wanted: { seeds: string; axes: Axes; resolution: number }): Promise<TakenTexts> {
  return post<TakenTexts>("take", { state: state.peek(), address: address(), ...wanted });
}

/** Hands one run to the browser as a file of this kind. Throws as `post` does. */
export async function download(kind: string, cca: string, seed: number): Promise<string> {
  const answer = await request(`file/${kind}`, { state: state.peek(), cca, seed });
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

/** For pages without access to the clipboard. */
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
