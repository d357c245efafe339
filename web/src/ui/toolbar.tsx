/**
 * A row of what belongs to a view: choices at the left, `Space` and then actions at the right. It folds where the page is narrow.
 *
 *     <Toolbar label="Curves">
 *       <Select … />
 *       <Space />
 *       <Menu label="Export" items={[…]} />
 *     </Toolbar>
 */
import type { ComponentChildren } from "preact";

export function Toolbar({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="toolbar" role="group" aria-label={label}>
      {children}
    </div>
  );
}

export function Space() {
  return <span class="space" />;
}
