/**
 * A button that opens a list of actions, after WAI-ARIA's menu button: arrow keys, Home, End and first letters move, Escape closes.
 *
 *     <Menu label="Export" items={[{ title: "PNG", onChoose: png }, { title: "CSV", note: "every point", onChoose: csv }]} />
 *     <Menu label="Presets" items={presets.map((p) => ({ group: p.group, title: p.title, note: p.note, onChoose: () => take(p) }))} />
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";

export interface Item {
  title: string;
  /** A line below the title. */
  note?: string | undefined;
  /** A heading under which neighbouring items stand together. */
  group?: string | undefined;
  disabled?: boolean;
  onChoose: () => void;
}

interface Props {
  label: string;
  items: readonly Item[];
  icon?: ComponentChildren;
  kind?: "plain" | "quiet";
  /** The side of the button at which the list is aligned. */
  side?: "left" | "right";
}

export function Menu({ label, items, icon, kind = "plain", side = "left" }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  const entries = () => [...(root.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const close = (back: boolean) => {
    setOpen(false);
    if (back) root.current?.querySelector("button")?.focus();
  };

  useEffect(() => {
    if (!open) return;
    entries()[0]?.focus();
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (!open) return;
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") close(true);
    else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.key === "ArrowUp") all[(at + all.length - 1) % all.length]?.focus();
    else if (event.key === "Home") all[0]?.focus();
    else if (event.key === "End") all.at(-1)?.focus();
    else if (/^\S$/.test(event.key) && !event.ctrlKey && !event.metaKey) {
      const after = [...all.slice(at + 1), ...all.slice(0, at + 1)];
      after.find((each) => each.textContent?.toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class={`button ${kind}`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" && !open) {
            event.preventDefault();
            setOpen(true);
          }
        }}
      >
        {icon}
        <span>{label}</span>
        <Icon name="chevron" />
      </button>
      {open && (
        <div class={`popup ${side}`} role="menu" id={id} aria-label={label}>
          {items.map((item, i) => [
            item.group && item.group !== items[i - 1]?.group && (
              <div key={`group ${i}`} class="group" role="presentation">
                {item.group}
              </div>
            ),
            <button
              key={i}
              type="button"
              role="menuitem"
              tabIndex={-1}
              disabled={item.disabled}
              onClick={() => {
                close(true);
                item.onChoose();
              }}
            >
              <span class="title">{item.title}</span>
              {item.note && <span class="note">{item.note}</span>}
            </button>,
          ])}
        </div>
      )}
    </div>
  );
}
