/**
 * A component whose code is loaded when it is first shown.
 *
 *     { id: "map", title: "Cliff map", View: lazy(() => import("./map/view").then((m) => m.MapView)) }
 */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { Status } from "./status";

export function lazy(load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<{ Component?: ComponentType; problem?: string }>({});
  let loading = false;
  return function Lazy() {
    const { Component, problem } = loaded.value;
    if (Component) return <Component />;
    if (!loading) {
      loading = true;
      load().then(
        (Component) => (loaded.value = { Component }),
        () => (loaded.value = { problem: "This view could not be loaded. Is the server still running? Reload the page." }),
      );
    }
    return <Status kind={problem ? "problem" : "working"}>{problem ?? "Loading …"}</Status>;
  };
}
