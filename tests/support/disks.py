"""Disks that are soon full."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(
    place: Path, megabytes: int, mode: str, owner: int
) -> Iterator[Callable[[int], None]]:
    """A directory is a disk of so many megabytes; a call makes it one of more. The test is skipped
    where this user may not mount one."""
    place.mkdir()
    options = f"size={megabytes}m,mode={mode},uid={owner}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")

    def enlarge(to: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={to}m", str(place)], check=True)

    try:
        yield enlarge
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()
