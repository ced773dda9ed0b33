"""Write log records as JSON, one object in a line, for programs that collect logs."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone


class JsonFormatter(logging.Formatter):
    """A formatter that writes each log record as a JSON object on one line.

    The object has ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``process``, ``message`` and,
    for an exception, ``error`` with its traceback. Use it with
    ``handler.setFormatter(JsonFormatter())``; ``pressure-mp worker --log-json`` does so.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
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
