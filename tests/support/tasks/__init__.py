"""Tasks in every state, beside the memory engine."""
