"""Runs of the programs in examples/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[3] / "examples"


def start(example: str, *args: object, url: str, **options: Any) -> subprocess.Popen[str]:
    """Start an example with that broker, and with warnings as errors."""
    interpreter = "sh" if example.endswith(".sh") else sys.executable
    return subprocess.Popen(
        [interpreter, str(EXAMPLES / example), *map(str, args)],
        env={
            **os.environ,
            "PRESSURE_URL": url,
            "PYTHON": sys.executable,
            "PYTHONWARNINGS": "error",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], text: str | None = None, limit: float = 100) -> str:
    """Wait until it has ended well; what it wrote."""
    try:
        output, errors = process.communicate(text, timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert (process.returncode, errors) == (0, "")
    return output
