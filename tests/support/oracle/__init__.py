"""Clients made of operations alone, and random histories beside the memory engine."""
