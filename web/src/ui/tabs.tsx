/**
 * Tabs after WAI-ARIA: one of them is in the page's order of Tab, arrow keys, Home and End move and choose.
 *
 *     <Tabs label="Views" id="view" tabs={VIEWS} chosen={view.value} onChoose={(id) => choose("view", id)}>
 *       <Shown />
 *     </Tabs>
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  label: string;
  /** Begins the ids of tabs and panel, which others may link to: `view-map`. */
  id: string;
  tabs: readonly { id: string; title: string }[];
  chosen: string;
  onChoose: (id: string) => void;
  children: ComponentChildren;
}

const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowLeft: (at, count) => (at + count - 1) % count,
  ArrowRight: (at, count) => (at + 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

export function Tabs({ label, id, tabs, chosen, onChoose, children }: Props) {
  const list = useRef<HTMLDivElement>(null);
  // Where the tabs are wider than the page, the chosen one is in sight.
  useEffect(() => {
    const row = list.current;
    const tab = row?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (!row || !tab) return;
    const left = tab.offsetLeft - row.offsetLeft;
    if (left < row.scrollLeft || left + tab.offsetWidth > row.scrollLeft + row.clientWidth)
      row.scrollLeft = left - (row.clientWidth - tab.offsetWidth) / 2;
  }, [chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const at = step(
      Math.max(
        0,
        tabs.findIndex((each) => each.id === chosen),
      ),
      tabs.length,
    );
    const next = tabs[at];
    if (!next) return;
    onChoose(next.id);
    list.current?.querySelectorAll<HTMLElement>('[role="tab"]')[at]?.focus();
  };
  return (
    <div class="tabs">
      <div ref={list} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((each) => (
          <button
            key={each.id}
            type="button"
            role="tab"
            id={`${id}-${each.id}`}
            aria-selected={each.id === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={each.id === chosen ? 0 : -1}
            onClick={() => onChoose(each.id)}
          >
            {each.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} class="tabpanel">
        {children}
      </div>
    </div>
  );
}
