"""The classes that users have in threads and processes."""
