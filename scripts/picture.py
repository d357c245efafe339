"""The pictures in docs/img: a study's figure, or the explorer that opens the README, a real page of a real server in Chromium.

    .venv/bin/python scripts/picture.py jitter-cliff explorer

The explorer's page is asked for a state by its address and photographed when its curves and its answer are complete. The file is a palette of 256
colours, so that the repository does not grow by a megabyte each time; a picture above :data:`MOST` is refused.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "img" / "explorer.png"
CHROMIUM = "/usr/bin/chromium"
STATE = "rtt=50ms&jitter=6ms&rate=42mbit&view=curves&curves.axis=jitter&curves.seeds=20"
"""The address of what is shown."""
SIZE = {"width": 1280, "height": 860}
SHARP = 2
"""Pixels of the picture for each of the page."""
MOST = 250_000
"""Bytes."""
PATIENCE_MS = 120_000
DONE = "Median of 20 runs per point"
"""What the view says when every run is in."""


def take(page: Page, url: str) -> bytes:
    """The picture of the page at :data:`STATE`, as PNG."""
    page.goto(url)
    page.goto(f"{page.url.split('#')[0]}#{STATE}")
    page.reload()
    page.get_by_text(DONE).wait_for(timeout=PATIENCE_MS)
    page.wait_for_timeout(1000)
    return page.screenshot()


def study(name: str) -> int:
    """The figure of a study as PNG and SVG; its trials are kept in out/. Returns the exit status."""
    command = (sys.executable, "-m", "tcpscape", "study", "run", name, "--no-report", "--quiet", "--out", "out")
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
    for end in ("png", "svg") if status == 0 else ():
        shutil.copy(ROOT / "out" / name / f"{name}.{end}", PICTURE.parent)
    return status


def explorer() -> int:
    """The picture of the explorer; returns the exit status."""
    server = subprocess.Popen([sys.executable, "-m", "tcpscape", "explore", "--no-browser"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip() if server.stdout else ""
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = browser.new_context(viewport=SIZE, device_scale_factor=SHARP, color_scheme="light")
            data = take(context.new_page(), url)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    small = io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    if len(small.getvalue()) > MOST:
        print(f"{PICTURE.name}: {len(small.getvalue())} bytes are more than {MOST}; make SHARP or SIZE smaller")
        return 1
    PICTURE.write_bytes(small.getvalue())
    print(f"{PICTURE.relative_to(ROOT)}: {len(small.getvalue())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(max(explorer() if name == "explorer" else study(name) for name in sys.argv[1:]))
