"""The demos of ``pressure-mp demo``."""
