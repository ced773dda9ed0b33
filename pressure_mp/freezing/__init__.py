"""Name this package's hooks to PyInstaller, which finds them by the entry point in setup.cfg."""

from __future__ import annotations


def hook_dirs() -> list[str]:
    """Return the folders with the hooks."""
    return list(__path__)
