"""Keys, and signatures that are checked before anything is decoded: only a process with a key can
put.

A signed item is ``mark | key id | MAC | payload``. The MAC of a payload of less than LARGE bytes is
keyed BLAKE2b (RFC 7693), which takes the least time for a call; a larger payload has HMAC-SHA256
(RFC 2104), which takes the least time for a byte where the processor has instructions for it. The
mark says which. Both have seen the queue's prefix and name, each with its length before it, so that
an item of one queue is not valid on another.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..exceptions import ArgumentError, ArgumentTypeError, EncodingError
from ..hidden import hide
from .error_texts import ITEM, Kind

if TYPE_CHECKING:
    from ..authentication import AuthenticationError

AuthKey = bytes | str | Sequence[bytes | str]

VARIABLE = "PRESSURE_AUTHKEY"
#: A signed item begins with one of these, by its MAC, and no UTF-8 text or pickle does.
MARK, LARGE_MARK = b"\xf9mp2", b"\xf9mp1"
MARKS = (MARK, LARGE_MARK)
#: From so many bytes on HMAC-SHA256 takes less time, where the processor has instructions for it.
LARGE = 1024
_ID_SIZE = 8
_HEAD_SIZE = len(MARK) + _ID_SIZE
_MAC_SIZE = 32
_PAYLOAD = _HEAD_SIZE + _MAC_SIZE


T = TypeVar("T")

#: Bytes that were checked: a copy of a part of an item, or a view of it.
Checked = bytes | memoryview


class _Hash(Protocol):
    """A hash of :mod:`hashlib`."""

    def copy(self) -> _Hash: ...

    def update(self, data: Checked, /) -> None: ...

    def digest(self) -> bytes: ...


class _Hmac(NamedTuple):
    """HMAC as two hashes, which have seen the key: a copy of each takes a payload in a third of the
    time of ``hmac``."""

    inner: _Hash
    outer: _Hash

    def of(self, payload: Checked) -> bytes:
        """Return the MAC of the bytes that the inner hash has seen, and of this payload."""
        inner, outer = self.inner.copy(), self.outer.copy()
        inner.update(payload)
        outer.update(inner.digest())
        return outer.digest()


class Key:
    """A secret. Its ``id`` tells it from others and is not secret."""

    __slots__ = ("_secret", "id")

    def __init__(self, secret: bytes) -> None:
        import hmac  # and hashlib below, they load OpenSSL, and only signing needs them

        self._secret = hide(secret)
        self.id = hmac.digest(secret, b"pressure_mp key id", "sha256")[:_ID_SIZE]

    def mac(self, context: bytes) -> _Hash:
        """Return a MAC for small payloads, for this context; take a copy for each."""
        import hashlib

        # BLAKE2b takes no key of more than 64 bytes: so each secret is made one of that size.
        key = hide(hashlib.blake2b(self._secret, person=b"pressure_mp item").digest())
        key = hide(hashlib.blake2b(context, key=key).digest())
        # With this byte the key's block is hashed. Then a payload of up to 127 bytes is one more
        # block; with the context before it, it would be two.
        return hashlib.blake2b(MARK[-1:], key=key, digest_size=_MAC_SIZE)

    def large_mac(self, context: bytes) -> _Hmac:
        """Return a MAC for large payloads, for this context."""
        from hashlib import sha256

        key = self._secret if len(self._secret) <= 64 else sha256(self._secret).digest()
        inner, outer = (
            sha256(bytes(byte ^ pad for byte in key.ljust(64, b"\0"))) for pad in (0x36, 0x5C)
        )
        inner.update(context)
        return _Hmac(inner, outer)

    def __repr__(self) -> str:
        return f"<Key {self.id.hex()}>"

    def __reduce__(self) -> tuple[type[Key], tuple[bytes]]:
        if not is_spawning():
            raise TypeError("a key is pickled only for a child process that is being started")
        return Key, (self._secret,)


Keys = tuple[Key, ...]


def is_spawning() -> bool:
    """Tell whether a child process of this one is being given its state right now."""
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None


def gather(authkey: AuthKey | None, anonymous: bool, environ: Mapping[str, str]) -> Keys:
    """Return the keys of a new handle: the given keys, else the keys of the environment, else the
    process tree's.

    Without any, a named queue is not signed: returns none.
    """
    given = hide(environ.get(VARIABLE))
    del environ  # a traceback with local variables would show all of it
    if authkey is not None:
        keys = read_keys(hide(authkey), "authkey")
    elif given is not None:
        keys = read_keys(hide([part.strip() for part in given.split(",")]), VARIABLE)
    else:
        keys = _of_process_tree() if anonymous else ()
    hold(keys)
    return keys


def read_keys(authkey: object, source: str) -> Keys:
    """Read one or several keys; the first of them signs. An error does not show the given value."""
    given = [authkey] if isinstance(authkey, (bytes, str)) else authkey
    if not isinstance(given, Sequence) or not all(isinstance(key, (bytes, str)) for key in given):
        raise ArgumentTypeError(
            f"{source} is bytes, a str, or a sequence of these, not {type(authkey).__name__}"
        )
    secrets = [hide(key.encode() if isinstance(key, str) else bytes(key)) for key in given]
    if not secrets or not all(secrets):
        raise ArgumentError(f"{source} has an empty key; leave it out for a queue without signing")
    return tuple(Key(secret) for secret in secrets)


def _of_process_tree() -> Keys:
    from multiprocessing import current_process

    return (Key(bytes(current_process().authkey)),)


#: Keys that this process was given, for handles that come back to it without keys.
_held: dict[bytes, Key] = {}


def hold(keys: Keys) -> None:
    """Keep keys for handles that come to this process without keys."""
    for key in keys:
        _held[key.id] = key


def recall(ids: Iterable[bytes], anonymous: bool, queue: str, environ: Mapping[str, str]) -> Keys:
    """Return the keys of a handle that came without them: the known keys with one of its ids.

    Raises AuthenticationError when this process has none of them.
    """
    candidates = [tuple(_held[key_id] for key_id in ids if key_id in _held)]
    if anonymous:
        candidates.insert(0, _of_process_tree())
    if VARIABLE in environ:
        candidates.insert(0, gather(None, False, environ))
    del environ  # a traceback with local variables would show all of it
    for keys in candidates:
        if any(key.id in ids for key in keys):
            return keys
    from ..authentication import AuthenticationError

    raise AuthenticationError(
        f"this handle of queue {queue!r} signs its items, but it came to this process without its "
        f"key ({_hexes(ids)}): a key goes along only when a child process is started. Set "
        f"{VARIABLE} here and where the handle was made, or make the handle here with authkey="
    )


class Signatures(Protocol):
    """Signs the items of a queue, and checks them."""

    def sign(self, payload: bytes, /) -> bytes:
        """Return the item to queue."""

    def check(self, item: bytes, kind: Kind | None = None) -> bytes:
        """Return the payload of an item, or of bytes of another ``kind``; raises
        AuthenticationError."""

    def check_many(
        self, items: Iterable[bytes], view: Callable[[bytes], Checked] = bytes
    ) -> list[Checked]:
        """Check each item as :meth:`check` does, in as few steps as possible. Of a large item the
        payload is a part of a ``view``, which may be a memoryview: a copy of many large payloads
        takes new memory, and more time than the check."""


class Signer:
    """Signs and checks the items of one queue: the first key signs, any of them is accepted."""

    def __init__(self, keys: Keys, prefix: str, queue: str, kind: Kind = ITEM) -> None:
        from hmac import compare_digest

        self._are_equal = compare_digest
        parts = (part.encode() for part in (prefix, queue))
        context = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        self._queue = queue
        self._kind = kind
        self._small = {MARK + key.id: key.mac(context) for key in keys}
        self._large = {LARGE_MARK + key.id: key.large_mac(context) for key in keys}
        self._accepted = [key.id for key in keys]
        self.sign = self.signing(bytes)

    def signing(self, make: Callable[[T], bytes], most: float = math.inf) -> Callable[[T], bytes]:
        """Return a function that signs the bytes of ``make``, in as few steps as possible; but not
        ``most`` bytes or more."""
        head, mac = next(iter(self._small.items()))
        large_head, large_mac = next(iter(self._large.items()))
        copy, join = mac.copy, b"".join

        def make_and_sign(one: T) -> bytes:
            payload = make(one)
            if len(payload) < LARGE:
                mac = copy()
                mac.update(payload)
                return join((head, mac.digest(), payload))
            if len(payload) < most:
                return join((large_head, large_mac.of(payload), payload))
            return payload

        return make_and_sign

    def check_many(
        self, items: Iterable[bytes], view: Callable[[bytes], Checked] = bytes
    ) -> list[Checked]:
        """See :class:`Signatures`. Small items, signed with the first key, take the fewest
        steps."""
        head, mac = next(iter(self._small.items()))
        large_head, large_mac = next(iter(self._large.items()))
        copy, are_equal = mac.copy, self._are_equal
        payloads: list[Checked] = []
        for item in items:
            payload: Checked
            is_good = False
            if item.startswith(head):
                payload, mac = item[_PAYLOAD:], copy()
                mac.update(payload)
                is_good = are_equal(mac.digest(), item[_HEAD_SIZE:_PAYLOAD])
            elif item.startswith(large_head):
                payload = view(item)[_PAYLOAD:]
                is_good = are_equal(large_mac.of(payload), item[_HEAD_SIZE:_PAYLOAD])
            payloads.append(payload if is_good else self.check(item))
        return payloads

    def check(self, item: bytes, kind: Kind | None = None) -> bytes:
        """Check an item, in the same time for every wrong MAC."""
        head, payload = item[:_HEAD_SIZE], item[_PAYLOAD:]
        if head in self._small:
            mac = self._small[head].copy()
            mac.update(payload)
            found = mac.digest()
        elif head in self._large:
            found = self._large[head].of(payload)
        else:
            raise self._refusal(item, kind or self._kind)
        if not self._are_equal(found, item[_HEAD_SIZE:_PAYLOAD]):
            raise self._refusal(item, kind or self._kind)
        return payload

    def _refusal(self, item: bytes, kind: Kind) -> AuthenticationError:
        if not item.startswith(MARKS):
            problem = "is not signed: it was put without a key, or it is forged"
            advice = f"give every producer the key (authkey= or {VARIABLE})"
        elif item[:_HEAD_SIZE] in (*self._small, *self._large):
            problem = (
                "has a wrong signature: it is forged, changed or truncated, or it was signed for "
                "another queue"
            )
            advice = "find out which programs write to the broker"
        else:
            problem = (
                f"is signed with another key ({_key_id(item)}; this handle accepts "
                f"{_hexes(self._accepted)}), forged or truncated"
            )
            advice = f"if the key is one of yours, add it to the keys here (authkey= or {VARIABLE})"
        return _refused(item, kind, self._queue, problem, advice)


class Unsigned:
    """For a named queue without a key: the items come from the serializer as they are."""

    def __init__(self, queue: str, kind: Kind) -> None:
        self._queue = queue
        self._kind = kind

    def sign(self, payload: bytes) -> bytes:
        if payload.startswith(MARKS):
            raise EncodingError(
                f"queue {self._queue!r} is not signed, and the item begins like a signed item: "
                "no consumer would accept it"
            )
        return payload

    def check(self, item: bytes, kind: Kind | None = None) -> bytes:
        if item.startswith(MARKS):
            raise _refused(
                item,
                kind or self._kind,
                self._queue,
                f"is signed (with key {_key_id(item)}), and this handle has no key",
                f"give the handle the producers' key (authkey= or {VARIABLE})",
            )
        return item

    def check_many(
        self, items: Iterable[bytes], view: Callable[[bytes], Checked] = bytes
    ) -> list[Checked]:
        """See :class:`Signatures`; nothing is copied."""
        return list(map(self.check, items))


def take_apart(item: bytes) -> tuple[str | None, bytes]:
    """Return the id of the key that an item claims to be signed with, None when it is not signed;
    and its payload. Nothing is checked."""
    return (_key_id(item), item[_PAYLOAD:]) if item.startswith(MARKS) else (None, item)


def exchanged(item: bytes, queue: str, kind: Kind = ITEM) -> AuthenticationError:
    """Return the error for a signed item whose content is not the content that was signed."""
    return _refused(
        item,
        kind,
        queue,
        "has another content than was signed: a part of it was exchanged",
        "find out which programs write to the broker",
    )


def _refused(item: bytes, kind: Kind, queue: str, problem: str, advice: str) -> AuthenticationError:
    from ..authentication import AuthenticationError

    return AuthenticationError(
        f"{kind.what} of {len(item)} bytes from queue {queue!r} {problem}. It was not decoded, and "
        f"{kind.fate}; {advice}",
        item,
    )


def _key_id(item: bytes) -> str:
    return item[len(MARK) : _HEAD_SIZE].hex()


def _hexes(ids: Iterable[bytes]) -> str:
    return ", ".join(key_id.hex() for key_id in ids)
