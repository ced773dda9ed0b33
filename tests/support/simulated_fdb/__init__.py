"""A simulator of FoundationDB for tests, beneath the real binding."""
