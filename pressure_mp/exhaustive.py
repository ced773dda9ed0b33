"""For the end of a ``match`` that has a case for everything: mypy says which one is missing."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from typing import assert_never as assert_never
else:
    from typing import NoReturn

    def assert_never(value: NoReturn) -> NoReturn:
        """Never called."""
        raise AssertionError(f"no case for {value!r}")
