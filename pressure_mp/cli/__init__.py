"""The command ``pressure-mp``."""

from __future__ import annotations

import sys
import warnings


def main() -> None:
    """Run the command that ``sys.argv`` names; ends the process."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):  # something that they need is missing
            raise
        print(
            f"pressure-mp needs {error.name}, which is not installed: "
            "pip install 'pressure_mp[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    # A thread drives coroutines by hand: Ctrl-C can come between the making of one and its start.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    from .app import app

    app()
