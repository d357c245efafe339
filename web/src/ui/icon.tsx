/**
 * A drawing of 16 × 16 in the colour of its text, never read out: the button around it has the name.
 *
 *     <Icon name="download" />
 */
const PATHS = {
  add: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  chevron: "M4 6l4 4 4-4",
  undo: "M6 3L3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6",
  reset: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  download: "M8 2v8M5 7l3 3 3-3M3 13h10",
  copy: "M6 6h7v7H6zM3 10V3h7",
  check: "M3 8.5l3.2 3L13 4.5",
  warning: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.2v.3",
} as const;

type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
