"""Complete words with a colon in them, as a URL has, or ``--option=value``, in bash."""

from __future__ import annotations

from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class


@add_completion_class
class ColonComplete(BashComplete):
    """Joins the parts of a word that bash has split before and behind each colon; and each equals
    sign behind an option."""

    #: The part of the completed word up to its last colon: bash keeps that.
    _kept = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the completed one, and that one."""
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
        """Return the text that bash puts behind the last colon."""
        return f"{item.type},{item.value.removeprefix(self._kept)}"


def _belongs(before: str, word: str) -> bool:
    """Tell whether a word goes on where the word before it ends."""
    if before.startswith("--") and (word.startswith("=") or before.endswith("=")):
        return True
    return word.startswith(":") or before.endswith(":")
