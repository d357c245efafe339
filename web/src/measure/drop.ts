/** Files that are dropped anywhere on the page are opened. */
import { signal } from "@preact/signals";
import { upload } from "./opened";

/** Whether a file hovers over the page. */
export const hovering = signal(false);

/** Begins to accept files; returns the function that ends it. */
export function acceptDrops(target: Document = document): () => void {
  const holds = (event: DragEvent) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (event: DragEvent) => {
    if (!holds(event)) return;
    event.preventDefault();
    hovering.value = true;
  };
  const leave = (event: DragEvent) => {
    if (!event.relatedTarget) hovering.value = false;
  };
  const drop = (event: DragEvent) => {
    if (!holds(event)) return;
    event.preventDefault();
    hovering.value = false;
    const file = event.dataTransfer?.files[0];
    if (file) void upload(file);
  };
  target.addEventListener("dragover", over);
  target.addEventListener("dragleave", leave);
  target.addEventListener("drop", drop);
  return () => {
    target.removeEventListener("dragover", over);
    target.removeEventListener("dragleave", leave);
    target.removeEventListener("drop", drop);
  };
}

if (typeof document !== "undefined") acceptDrops();
