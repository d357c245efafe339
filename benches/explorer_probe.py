"""A page of the explorer in Chromium, with a probe in it: when questions were asked, blocks came, and something was drawn.

The probe runs before the page's own scripts and needs nothing of them: it listens to the same stream of events, looks at requests as they are made,
and marks the frame with each stroke or fill of a canvas: the one that is being made, or the next one. Times are the page's `performance.now()`, ms.
"""

from __future__ import annotations

import pathlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from browser.explorer import Explorer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DESK = {"width": 1280, "height": 800}
PATIENCE_MS = 60_000
PROBE = """
(() => {
  const probe = (window.probe = { asks: [], blocks: [], painted: [], moved: 0, keep: true });
  const header = (text) => {
    const bytes = (count) => Uint8Array.from(atob(text.slice(0, Math.ceil(count / 3) * 4)), (c) => c.charCodeAt(0));
    const length = new DataView(bytes(6).buffer).getUint32(0, true);
    return JSON.parse(new TextDecoder().decode(bytes(4 + length).subarray(4, 4 + length)));
  };
  const Native = window.EventSource;
  window.EventSource = class extends Native {
    constructor(...a) {
      super(...a);
      this.addEventListener("block", (event) => {
        if (!probe.keep) return;
        const { kind, generation, name, values, columns } = header(event.data);
        probe.blocks.push({ at: performance.now(), kind, generation, name, values, rows: columns[0]?.length ?? 0, data: name === probe.whole ? event.data : "" });
      });
    }
  };
  const fetched = window.fetch;
  window.fetch = (where, options) => {
    if (probe.keep && String(where).endsWith("/api/ask")) {
      const { kind, generation } = JSON.parse(options.body);
      probe.asks.push({ at: performance.now(), kind, generation });
    }
    return fetched(where, options);
  };
  const later = window.requestAnimationFrame.bind(window);
  let [pending, inFrame] = [false, false];
  const soon = () => {
    if (!probe.keep) return;
    if (inFrame) probe.painted.push(performance.now());
    else if (!pending) {
      pending = true;
      later(() => { pending = false; probe.painted.push(performance.now()); });
    }
  };
  window.requestAnimationFrame = (call) => later((now) => {
    inFrame = true;
    try { call(now); } finally { inFrame = false; }
  });
  for (const name of ["stroke", "fill", "putImageData", "drawImage", "fillRect"]) {
    const own = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...a) { soon(); return own.apply(this, a); };
  }
  document.addEventListener("input", () => (probe.moved = performance.now()), true);
  probe.clear = () => { probe.asks = []; probe.blocks = []; probe.painted = []; probe.moved = 0; };
})();
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window: it draws in software."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "chromium is not installed: apt-get install chromium"
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--enable-precise-memory-info"])
        yield browser
        browser.close()


@contextmanager
def probed(browser: Browser, server: Explorer, fragment: str) -> Iterator[Page]:
    """A page in a context of its own; `fragment` is the state in the address."""
    context = browser.new_context(viewport=DESK)
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(PROBE)
    page = context.new_page()
    page.goto(f"{server.url}#{fragment}")
    yield page
    context.close()


def slide(page: Page, slider: Any, share: float, steps: int = 8) -> None:
    """Drags the thumb of a slider with the mouse to a share of its width, as a hand does: a step in each frame."""
    box = slider.bounding_box()
    here = page.evaluate("([s]) => (s.value - s.min) / (s.max - s.min)", [slider.element_handle()])
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * here, y)
    page.mouse.down()
    for step in range(1, steps + 1):
        page.mouse.move(box["x"] + box["width"] * (here + (share - here) * step / steps), y)
        page.wait_for_timeout(16)
    page.mouse.up()


def last_asked(page: Page, kind: str) -> dict[str, Any]:
    """What happened to the newest question of a kind: `moved` (the slider's last input), `asked`, `blocks`, `painted`, all ms."""
    return page.evaluate(
        """(kind) => {
          const asked = probe.asks.filter((ask) => ask.kind === kind).at(-1);
          const blocks = asked ? probe.blocks.filter((block) => block.kind === kind && block.generation === asked.generation) : [];
          return { moved: probe.moved, asked: asked?.at ?? null, blocks, painted: probe.painted };
        }""",
        kind,
    )


def ended(page: Page, kind: str, timeout_ms: int = PATIENCE_MS) -> None:
    """Waits until the newest question of a kind is answered in full."""
    page.wait_for_function(
        """(kind) => {
          const asked = probe.asks.filter((ask) => ask.kind === kind).at(-1);
          return asked && probe.blocks.some((b) => b.kind === kind && b.generation === asked.generation && (b.name === "end" || b.name === "error"));
        }""",
        arg=kind,
        timeout=timeout_ms,
    )
