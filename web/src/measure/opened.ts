/** What the page has opened: from the command line (`tcpscape explore FILE`), or by upload. */
import { effect, signal } from "@preact/signals";
import { post } from "../server/post";
import { start } from "../server/start";
import { page } from "../server/stream";
import type { OpenedDocument } from "../server/contract";
import { go } from "../state/address";
import { change, isNetwork, options } from "../state/state";

/** What is open; null where nothing is. A new object for each thing that is opened. */
export const opened = signal<OpenedDocument | null>(null);
/** What is wrong with the last upload, as a line. */
export const problem = signal("");
/** How far an upload is, 0 to 1; null where there is none. */
export const uploading = signal<number | null>(null);

/** Options that are about one thing that is open. */
const OF_ONE = ["measure.flow", "measure.cca", "measure.part", "measure.axis"];
/** Bytes of the largest upload. */
export const MOST = 256 * 2 ** 20;

/** Sends a file to the server and opens it. What the page had opened is closed by that. */
export async function upload(file: File): Promise<void> {
  if (file.size > MOST) {
    problem.value = `${file.name} has ${Math.ceil(file.size / 2 ** 20)} MiB, and an upload has at most ${MOST / 2 ** 20}; open it with tcpscape explore FILE`;
    return;
  }
  problem.value = "";
  uploading.value = 0;
  try {
    const answer = await send(`/api/upload?page=${page}&name=${encodeURIComponent(file.name)}`, file);
    if (answer.ok) open(answer.document as OpenedDocument);
    else problem.value = (answer.document as { text?: string }).text ?? "the server did not take the file; try again";
  } catch {
    problem.value = "the server did not take the file; is it still running?";
  } finally {
    uploading.value = null;
  }
}

/** Closes what is open. */
export function close(): void {
  opened.value = null;
  problem.value = "";
  post("close", {}).catch(() => undefined); // a server that is not there has nothing open
}

/** Shows what was opened: a path moves the sliders, everything else has its view. */
function open(document: OpenedDocument): void {
  opened.value = document;
  // A flow, a part or an axis of what was open before is none of this.
  options.value = Object.fromEntries(Object.entries(options.peek()).filter(([name]) => !OF_ONE.includes(name)));
  go("measure");
  if (document.state) change(document.state);
}

/** XMLHttpRequest instead of fetch: it says how far it is. */
function send(url: string, file: File): Promise<{ ok: boolean; document: unknown }> {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => (uploading.value = event.loaded / Math.max(1, event.total)));
    request.addEventListener("error", () => failed(new Error("no connection")));
    request.addEventListener("load", () => {
      let document: unknown = {};
      try {
        document = JSON.parse(request.responseText);
      } catch {
        // an answer that is no JSON has no line
      }
      done({ ok: request.status === 200, document });
    });
    request.send(file);
  });
}

let begun = false;
effect(() => {
  const there = start.value;
  if (!there || begun) return;
  begun = true;
  // After the state was taken from the address: what that says is stronger than what the command line named.
  const named = there.opened;
  if (named) queueMicrotask(() => begin(named));
});

function begin(named: OpenedDocument): void {
  opened.value = named;
  if (location.hash.length > 1) return;
  if (named.state) change(named.state);
  if (named.kind !== "setup") go("measure");
  else if (named.state && isNetwork(named.state)) go("network");
}
