"""How many random histories a test draws."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

#: What the run was asked for with ``--histories``.
asked: int | None = None


def drawn(usual: int, **options: Any) -> settings:
    """Settings for so many histories, or for as many as the run was asked for."""
    if asked:
        options["derandomize"] = False  # as it is under CI, where every run draws the same
    return settings(max_examples=asked or usual, suppress_health_check=list(HealthCheck), **options)
