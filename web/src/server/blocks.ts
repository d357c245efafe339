/** Blocks: pieces of an answer, a JSON header with columns of numbers behind it (`python/tcpscape/web/blocks.py` says the form). */

import type { Blocks } from "./contract";

export type Kind = keyof Blocks;
export type Columns = Record<string, Float64Array | Float32Array>;

interface Header {
  kind: string;
  generation: number;
  name: string;
  values: unknown;
  columns: { name: string; type: "f64" | "f32"; length: number }[];
}

/** A block as it comes. */
export interface RawBlock extends Omit<Header, "columns"> {
  columns: Columns;
}

/** A block of a kind of question, told apart by its name. */
export type Block<K extends Kind> = { [Name in keyof Blocks[K]]: { name: Name; values: Blocks[K][Name]; columns: Columns } }[keyof Blocks[K]];
/** The block of this name. */
export type Named<K extends Kind, Name extends keyof Blocks[K]> = Extract<Block<K>, { name: Name }>;

/** The block in the data of an event. */
export function decode(base64: string): RawBlock {
  const bytes = bytesOf(base64);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Header;
  const columns: Columns = {};
  let at = 4 + length;
  for (const { name, type, length: count } of header.columns) {
    columns[name] = type === "f64" ? new Float64Array(bytes.buffer, at, count) : new Float32Array(bytes.buffer, at, count);
    at += Math.ceil((count * (type === "f64" ? 8 : 4)) / 8) * 8;
  }
  return { ...header, columns };
}

/** A plain loop: `Uint8Array.from` with a function takes twenty times as long, 8 ms for a run's columns. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}
