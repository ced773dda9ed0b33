"""Traces are tested where OpenTelemetry's SDK is installed."""

from __future__ import annotations

try:
    import opentelemetry.sdk  # noqa: F401
except ImportError:
    collect_ignore = ["test_traces.py"]
