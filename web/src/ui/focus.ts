/**
 * Where the focus goes when what had it is taken away: to the first button of the place that stays, as soon as the page is drawn anew.
 *
 *     onClick={() => { remove(row); refocus(list.current); }}
 */
export function refocus(place: Element | null): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) place?.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
  });
}
