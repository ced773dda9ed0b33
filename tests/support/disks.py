"""Disks that are soon full."""

from __future__ import annotations

import contextlib
import shutil
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


@contextlib.contextmanager
def quota(place: Path, megabytes: int) -> Iterator[Path]:
    """The directory that this gives has a quota of so many megabytes, which counts for every user.
    The test is skipped where there is no btrfs, or this user may not mount one."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("btrfs is not installed")
    image, limited = place.with_suffix(".image"), place / "limited"
    with image.open("wb") as file:
        file.truncate(512 << 20)
    subprocess.run(["mkfs.btrfs", "--quiet", str(image)], check=True)
    place.mkdir()
    mount = ["mount", "-o", "loop", str(image), str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk of btrfs")
    try:
        for command in (
            ["quota", "enable", place],
            ["subvolume", "create", limited],
            ["qgroup", "limit", f"{megabytes}M", limited],
        ):
            subprocess.run(["btrfs", *command], check=True, stdout=subprocess.DEVNULL)
        yield limited
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
