/** The views of the page, in the order of their tabs. Adding one: a folder with its component, and a line here. */
import type { ComponentType } from "preact";

export interface View {
  id: string;
  title: string;
  View: ComponentType;
}

export const VIEWS: View[] = [];
