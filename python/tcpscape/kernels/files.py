"""Which files of a kernel's sources a User-Mode Linux kernel can need. The others, two thirds, are left out: time and disk."""

from __future__ import annotations

import re

OTHER_ARCHITECTURES = re.compile(r"arch/(?!um/|x86/)[^/]+/")
NEVER = ("Documentation/", "tools/testing/", "tools/perf/")
DEVICES = (
    "drivers/accel/", "drivers/clk/", "drivers/gpu/", "drivers/hwmon/", "drivers/iio/", "drivers/infiniband/", "drivers/media/", "drivers/mtd/",
    "drivers/net/ethernet/", "drivers/net/wireless/", "drivers/pinctrl/", "drivers/scsi/", "drivers/staging/", "drivers/usb/", "drivers/video/",
    "sound/isa/", "sound/pci/", "sound/soc/", "sound/usb/",
)
"""Drivers of hardware that such a kernel cannot have: large, and make only reads their build files."""
BUILD_FILE = re.compile(r"(?:.*/)?(?:Kconfig|Kbuild|Makefile)[^/]*")
"""Always kept: Kconfig and make read them all."""
TOP = frozenset(("COPYING", "CREDITS", "Documentation", "Kbuild", "Kconfig", "LICENSES", "MAINTAINERS", "Makefile", "README", "arch", "block"))
"""What can come first in an archive that has no directory around the sources."""
PROOF = ("Makefile", "Kconfig", "arch/um/Kconfig")
"""Files without which a directory is no kernel that can be built as User-Mode Linux."""


def wanted(relative: str) -> bool:
    """Whether the build can need this file; the path is relative to the top, with slashes."""
    if BUILD_FILE.fullmatch(relative):
        return True
    return not (relative.startswith(NEVER) or relative.startswith(DEVICES) or OTHER_ARCHITECTURES.match(relative))


def enters(directory: str) -> bool:
    """Whether a directory can hold a wanted file: all but the version control's own."""
    return directory != ".git" and not directory.endswith("/.git")
