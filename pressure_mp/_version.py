"""The package's version, and nothing else: it is read without importing the package."""

__version__ = "0.1.0"
