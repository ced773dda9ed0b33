"""The identity of clients, and the processes that live. Imports nothing else of the package."""
