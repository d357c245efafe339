/** The views of the page, in the order of their tabs. Adding one: a folder with its component, and a line here. */
import type { ComponentType } from "preact";
import { Inside } from "./inside/inside";

export interface View {
  id: string;
  title: string;
  View: ComponentType;
}

export const VIEWS: View[] = [
  { id: "inside", title: "Inside one run", View: Inside },
];
