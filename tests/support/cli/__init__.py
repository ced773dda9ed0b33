"""Runs of the command and of the examples."""
