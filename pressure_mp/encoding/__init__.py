"""Convert objects to the bytes that are queued, and back."""
