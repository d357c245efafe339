/**
 * A component whose code is loaded when it is first shown.
 *
 *     { id: "map", title: "Cliff map", View: lazy(() => import("./map/view").then((m) => m.MapView)) }
 */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "./button";
import { Status } from "./status";

export function lazy(load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<ComponentType | null>(null);
  const failed = signal(false);
  let loading = false;
  const begin = () => {
    if (loading) return;
    loading = true;
    failed.value = false;
    load()
      .then(
        (component) => (loaded.value = component),
        () => (failed.value = true),
      )
      .finally(() => (loading = false));
  };
  return function Lazy() {
    const Component = loaded.value;
    useEffect(() => {
      if (!loaded.peek()) begin();
    }, []);
    if (Component) return <Component />;
    if (!failed.value) return <Status kind="working">Loading …</Status>;
    return (
      <Status kind="problem">
        This view could not be loaded. Is the server still running? <Button onClick={begin}>Try again</Button>
      </Status>
    );
  };
}
