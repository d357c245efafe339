/** The page's address: fields of the state and options that differ from their defaults, readable, behind the `#` (which is never sent anywhere). */
import { batch, effect } from "@preact/signals";
import type { State } from "../server/contract";
import { choose, options, state } from "./state";

/** The address of a state: `#rtt=80ms&cca=cubic,bbr&view=map`. */
export function write(now: State, chosen: Record<string, string>, standard: State): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(now)) {
    const text = asText(value);
    if (text !== asText(standard[name as keyof State])) parts.set(name, text);
  }
  for (const [name, value] of Object.entries(chosen)) parts.set(name, value);
  return parts.toString().replace(/%(7C|3A|2C|2F|40)/g, (escaped) => PLAIN[escaped] ?? escaped);
}

/** What need not be escaped behind the `#`, so that people can read it. */
const PLAIN: Record<string, string> = { "%7C": "|", "%3A": ":", "%2C": ",", "%2F": "/", "%40": "@" };

/** State and options of an address; what it does not say has its default. */
export function read(fragment: string, standard: State): { state: State; options: Record<string, string> } {
  const now: Record<string, unknown> = { ...standard };
  const chosen: Record<string, string> = {};
  for (const [name, text] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (!Object.hasOwn(standard, name)) chosen[name] = text;
    else now[name] = fromText(text, standard[name as keyof State]);
  }
  return { state: now as unknown as State, options: chosen };
}

let isJump = false;

/** The next change of the state is a place of its own in the browser's history, to which its Back button returns; a moved slider is none. */
export function jump(): void {
  isJump = true;
}

/** Shows a view: a place of the history. */
export function go(view: string): void {
  jump();
  choose("view", view);
}

/** What ends a movement of the mouse or a finger. */
const ENDS = ["pointerup", "pointercancel", "blur", "pagehide"] as const;

/**
 * Keeps the address and the state the same from now on. A movement is written when it ends: a new address costs the browser 25 ms of a CPU, more than all else
 * that a step of a slider does.
 */
export function follow(standard: State): void {
  let isHeld = false;
  let waiting: string | null = null;
  const settle = () => {
    isHeld = false;
    if (waiting !== null) history.replaceState(null, "", waiting);
    waiting = null;
  };
  const take = () => {
    waiting = null;
    const there = read(location.hash, standard);
    batch(() => {
      if (write(there.state, {}, standard) !== write(state.peek(), {}, standard)) state.value = there.state;
      options.value = there.options;
    });
  };
  // At once, so that nobody asks about the defaults first.
  batch(() => {
    state.value = standard;
    take();
  });
  window.addEventListener("hashchange", take);
  window.addEventListener("popstate", take);
  window.addEventListener("pointerdown", () => (isHeld = true), true);
  for (const name of ENDS) window.addEventListener(name, settle, name !== "blur"); // not that of a field, which comes when a slider takes its focus
  effect(() => {
    const fragment = write(state.value, options.value, standard);
    const isPlace = isJump;
    isJump = false;
    if (isPlace) settle();
    waiting = null;
    if (fragment === location.hash.replace(/^#/, "")) return;
    const there = fragment ? `#${fragment}` : location.pathname;
    if (isPlace) history.pushState(null, "", there);
    else if (isHeld) waiting = there;
    else history.replaceState(null, "", there);
  });
}

function asText(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.join("|");
  if (typeof value === "object" && value)
    return Object.entries(value)
      .map(([k, v]) => `${k}: ${String(v)}`)
      .join("|");
  return String(value);
}

function fromText(text: string, standard: unknown): unknown {
  if (typeof standard === "boolean") return text === "yes";
  if (Array.isArray(standard)) return text ? text.split("|") : standard;
  if (typeof standard === "object" && standard)
    return Object.fromEntries(
      text
        ? text
            .split("|")
            .filter((part) => part.includes(": "))
            .map((part) => [part.slice(0, part.indexOf(": ")), part.slice(part.indexOf(": ") + 2)])
        : [],
    );
  return text;
}
