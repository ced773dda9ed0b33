"""Functions that a pickled handle can take along."""

from __future__ import annotations


def name_of(item):
    return item["name"]


def first(item):
    return item[0]


def weight_of(key):
    """Of "heavy" 3, of others 1."""
    return 3 if key == "heavy" else 1


def same(item):
    """One key, or one priority, for all items."""
    return 0
