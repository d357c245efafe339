/** Which run is shown: its seed, the one before and the next one. */
import type { ComponentChildren } from "preact";
import { Button } from "../ui";

/** Seeds that the answer is made of: from the last one the first follows. */
export const SEEDS = 20;

/** The seed that a text of the address names; 0 where it names none. */
export function seedOf(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

export function Seeds({ now, go, label, children }: { now: number; go: (seed: number) => void; label: string; children?: ComponentChildren }) {
  return (
    <span class="inside-seed" role="group" aria-label={label}>
      <Button label="The previous seed" onClick={() => go((now - 1 + SEEDS) % SEEDS)}>
        ‹
      </Button>
      <span class="value" aria-live="polite">
        seed {now}
      </span>
      <Button label="The next seed" onClick={() => go((now + 1) % SEEDS)}>
        ›
      </Button>
      {children}
    </span>
  );
}
