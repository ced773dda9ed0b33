"""What PyInstaller needs to know of this package, which it asks by the entry point in setup.cfg."""

from __future__ import annotations


def hook_dirs() -> list[str]:
    """The folders with the hooks."""
    return list(__path__)
