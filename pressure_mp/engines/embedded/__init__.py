"""The embedded server: how it is started, found again, and ended."""
