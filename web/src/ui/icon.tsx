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
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  open: "M2 5h4l1.5 2H14v6H2z",
  check: "M3 8.5l3.2 3L13 4.5",
  warning: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.2v.3",
  link: "M7 5l1.5-1.5a2.5 2.5 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.5 2.5 0 0 1-4-4L5 7M6 10l4-4",
  zoomOut: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5L14 14M5 7h4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
