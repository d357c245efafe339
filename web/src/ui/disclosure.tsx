/**
 * A heading that shows or hides what is below it. The content is made when it is first opened.
 *
 *     <Disclosure title="What it assumes">…</Disclosure>
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface Props {
  title: ComponentChildren;
  children: ComponentChildren | (() => ComponentChildren);
  /** Whether it begins open. */
  open?: boolean;
  class?: string;
}

export function Disclosure({ title, children, open = false, class: more = "" }: Props) {
  const [shown, show] = useState(open);
  return (
    <details class={`disclosure ${more}`} open={shown} onToggle={(event) => show(event.currentTarget.open)}>
      <summary>{title}</summary>
      {shown && <div class="inside">{typeof children === "function" ? children() : children}</div>}
    </details>
  );
}
