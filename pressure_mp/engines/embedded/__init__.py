"""A server of one's own: how it is started, found again, and ended."""
