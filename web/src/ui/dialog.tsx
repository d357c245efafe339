/**
 * A dialog above the page; Escape and its button close it, and the focus returns to where it was.
 *
 *     {open.value && <Dialog title="Copy as a command" onClose={() => (open.value = false)}>…</Dialog>}
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button";
import { Icon } from "./icon";

export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="content">
        <div class="head">
          <h2 id={id}>{title}</h2>
          <Button kind="quiet" icon={<Icon name="close" />} label="Close" onClick={() => dialog.current?.close()} />
        </div>
        {children}
      </div>
    </dialog>
  );
}
