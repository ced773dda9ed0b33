"""Log records as JSON, one object in a line, for programs that collect logs."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone


class JsonFormatter(logging.Formatter):
    """Makes of each record ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``process``,
    ``message`` and, of an error, ``error`` with its traceback.

    ``handler.setFormatter(JsonFormatter())`` is all that a program needs; ``pressure-mp worker
    --log-json`` does that.
    """

    def format(self, record: logging.LogRecord) -> str:
        """A record in one line."""
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)
