/**
 * The views of the page, in the order of their tabs. Adding one: a folder with its component, and a line here. Its code is loaded when it is first shown:
 *
 *     { id: "map", title: "Cliff map", View: lazy(() => import("./map/view").then((m) => m.MapView)) },
 *
 * A view is there only while its tab is shown: it asks its questions in an effect (`useSignalEffect`) and cancels them when it goes.
 */
import type { ComponentType } from "preact";
import "./measure/drop";
import { lazy } from "./ui";

export interface View {
  id: string;
  title: string;
  View: ComponentType;
}

export const VIEWS: View[] = [
  { id: "curves", title: "Curves", View: lazy(() => import("./curves/view").then((m) => m.CurvesView)) },
  { id: "map", title: "Cliff map", View: lazy(() => import("./map/view").then((m) => m.MapView)) },
  { id: "inside", title: "Inside one run", View: lazy(() => import("./inside/inside").then((m) => m.Inside)) },
  { id: "mix", title: "Shared bottleneck", View: lazy(() => import("./mix/mix").then((m) => m.Mix)) },
  { id: "network", title: "Network", View: lazy(() => import("./network/view").then((m) => m.NetworkView)) },
  { id: "measure", title: "Measurement", View: lazy(() => import("./measure/view").then((m) => m.MeasureView)) },
  { id: "learn", title: "Learn", View: lazy(() => import("./walks/view").then((m) => m.LearnView)) },
];
