"""Kernels for the virtual engine: real Linux kernels, built as User-Mode Linux and kept side by side in a cache.

The main type is :class:`BuiltKernel`, a kernel that can be booted; :func:`find` gives one by its name, :func:`built_kernels` all of them. Both are
in `cache`, where to begin. :func:`tcpscape.kernels.build.build` builds one, as `tcpscape kernel build` does: `source` brings the sources into the
cache (from a tarball, or as links to a tree of the user's), `config` makes the configuration and checks it, `build` calls make.
"""

from tcpscape.kernels.cache import BuiltKernel, built_kernels, default, find, home, locked, names, place, remove, save, size_on_disk

__all__ = ["BuiltKernel", "built_kernels", "default", "find", "home", "locked", "names", "place", "remove", "save", "size_on_disk"]
