"""Warnings that name the caller's line: however deep in this package they are found."""

from __future__ import annotations

import os
import sys
import warnings

#: How frames name files of this package: in a frozen program not as ``__file__`` does.
_PACKAGE = os.path.dirname(sys._getframe().f_code.co_filename) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this package from which it was called; in a coroutine, at the
    line that awaits it. (``warnings.warn``, whose ``skip_file_prefixes`` came with Python 3.12)"""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
