"""Completion in bash, of words that have a colon in them, as a URL has, or ``--option=value``."""

from __future__ import annotations

from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class


@add_completion_class
class ColonComplete(BashComplete):
    """Bash begins a word before and behind each colon and equals sign; here it is one word again,
    where that sign is behind an option."""

    #: What is before the last colon of the word that is completed: bash keeps that.
    _kept = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one."""
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*before, incomplete]:
            if words and word and _belongs(words[-1], word):
                words[-1] += word
            else:
                words.append(word)
        self._kept = words[-1][: words[-1].rfind(":") + 1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """What bash puts in the place of what is behind the last colon."""
        return f"{item.type},{item.value.removeprefix(self._kept)}"


def _belongs(before: str, word: str) -> bool:
    """Whether a word goes on where the one before ends."""
    if before.startswith("--") and (word.startswith("=") or before.endswith("=")):
        return True
    return word.startswith(":") or before.endswith(":")
