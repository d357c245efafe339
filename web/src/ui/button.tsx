/**
 * A button. `kind`: `plain` (a frame), `quiet` (no frame until pointed at), `main` (filled: at most one in a view).
 *
 *     <Button onClick={run}>Run 20 more</Button>
 *     <Button kind="quiet" icon={<Icon name="copy" />} label="Copy the command" onClick={copy} />   // an icon alone has a label
 */
import type { ComponentChildren } from "preact";

interface Props {
  children?: ComponentChildren;
  kind?: "plain" | "quiet" | "main";
  icon?: ComponentChildren;
  /** Its name where it shows an icon alone; also the tooltip. */
  label?: string;
  /** Whether it is pressed, for a button that turns something on and off. */
  pressed?: boolean;
  disabled?: boolean;
  onClick: (event: MouseEvent) => void;
}

export function Button({ children, kind = "plain", icon, label, pressed, disabled, onClick }: Props) {
  return (
    <button type="button" class={`button ${kind}`} aria-label={label} title={label} aria-pressed={pressed} disabled={disabled} onClick={onClick}>
      {icon}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}
