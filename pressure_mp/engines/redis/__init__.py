"""The engine for Redis and Valkey."""
