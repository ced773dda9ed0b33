"""A user's program that type checkers accept, and one that they refuse."""
