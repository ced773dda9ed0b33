"""Read brokers' URLs, and show them without secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit

from .exceptions import AddressError
from .hidden import hide

_ESCAPE = "a username or password in it has one of /?#[]@, to be written as %2F%3F%23%5B%5D%40"


class Url:
    """A broker's URL, taken apart.

    Its texts may have a password: code that raises an error with them in a frame removes the frames
    (see :func:`pressure_mp.hidden.without_frames`).
    """

    def __init__(self, text: str, origin: str = "") -> None:
        """``origin`` says where it was found. Raises AddressError, which shows no password."""
        self._text = text
        self.origin = origin
        parts = self._split()
        self._parts = parts
        self.scheme = parts.scheme
        if not parts.scheme or "://" not in text:
            raise self.error(self._without_scheme())
        #: The hosts and ports, without the login.
        self.place = parts.netloc.rpartition("@")[2]
        #: As it is written.
        self.path = parts.path
        self.username = unquote(parts.username) if parts.username else None
        self.password = hide(unquote(parts.password)) if parts.password else None
        #: As they are written.
        self.options = [option for option in parts.query.split("&") if option]

    def _split(self) -> SplitResult:
        try:
            return urlsplit(self._text)
        except ValueError:  # its text can show a password
            pass
        raise self._unreadable()

    @property
    def has_login(self) -> bool:
        """Whether it names a user, or a password."""
        return "@" in self._parts.netloc

    def error(self, problem: str) -> AddressError:
        """Return the error for this URL, which shows no password."""
        return AddressError(f"broker URL {self.shown!r} {problem}")

    def check_plain(self, form: str) -> None:
        """Raise AddressError if the URL has a login or options; ``form`` is what it may be."""
        if self.has_login or self.options:
            raise self.error(f"has a login or options; {form} has none")

    def absolute_path(self, problem: str) -> str:
        """Return the absolute path that the URL is. Raises AddressError with that ``problem``."""
        path = unquote(self.path)
        if self.place or not os.path.isabs(path) or path.endswith("/"):
            raise self.error(problem)
        return os.path.normpath("/" + path.lstrip("/"))  # some write four slashes

    def _without_scheme(self) -> str:
        if not self._text:
            return f"is empty{f' ({self.origin})' if self.origin else ''}"
        return "has no scheme: a URL begins with redis://, postgresql:// or another one"

    def _unreadable(self) -> AddressError:
        return self.error(f"cannot be read: its port is not a number, or {_ESCAPE}")

    @property
    def shown(self) -> str:
        """The part that may be shown, also of an unreadable URL: no options, and nothing of a
        login."""
        scheme, separator, rest = self._text.partition("://")
        if not separator:
            scheme, rest = "", self._text
        shown, _, options = rest.partition("?")
        if "@" in shown:
            shown = f"…@{shown.rpartition('@')[2]}"
        elif "@" in options:
            shown = "…"
        return f"{scheme}{separator}{shown}"

    def check_whole(self) -> None:
        """Raise AddressError if a character of a password ended the part of the URL that it is
        in."""
        texts = [self._parts.path, *map(_name, self.options)]
        if self._parts.fragment or any("@" in text for text in texts):
            raise self.error(f"cannot be read: {_ESCAPE}")

    def hosts(self, default: str, port: int) -> tuple[tuple[str, int], ...]:
        """Return the hosts and ports of the URL: ``default`` where it has only a port, and ``port``
        where it has none."""
        try:
            return tuple(_host(one, default, port) for one in self.place.split(",") if one)
        except ValueError:
            pass
        raise self._unreadable()

    def take(self, *names: str) -> dict[str, str]:
        """Return these options by name, as far as the URL has them, and remove them from it."""
        found = [option for option in self.options if _name(option) in names]
        self.options = [option for option in self.options if _name(option) not in names]
        return {_name(option): unquote_plus(option.partition("=")[2]) for option in found}

    def check_options(self, known: Iterable[str]) -> None:
        """Raise AddressError for an option that is not ``known``."""
        for name in map(_name, self.options):
            if name not in known:
                # Text that is no word may be a part of a password.
                shown = repr(name) if name.isidentifier() else "that is no word"
                raise self.error(f"has an unknown option {shown}; it can have {', '.join(known)}")

    @property
    def query(self) -> str:
        """The options that were not taken, as they are written."""
        text = "&".join(self.options)
        return hide(text) if any(map(is_secret, self.options)) else text


def _host(text: str, default: str, port: int) -> tuple[str, int]:
    found = urlsplit(f"//{text}")
    return unquote(found.hostname or default), port if found.port is None else found.port


def _name(option: str) -> str:
    return option.partition("=")[0]


def is_secret(option: str) -> bool:
    """Tell whether an option, as it is written, must not be shown."""
    return "password" in _name(option)


def join(host: str, port: int) -> str:
    """Write a host and its port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def yes_or_no(text: str, what: str) -> bool:
    """Read a setting of 1 or 0. Raises AddressError."""
    if text not in ("0", "1"):
        raise AddressError(f"{what} is {text!r}; it is 1, or 0 for no")
    return text == "1"


def number(text: str, what: str) -> int:
    """Read a setting that is a number. Raises AddressError."""
    if not text.isdecimal():
        raise AddressError(f"{what} is {text!r}, which is not a number")
    return int(text)
