"""The histories on a Redis server, whose keys are looked at after each step."""

from __future__ import annotations

from collections.abc import Callable

import redis
import waiting
from hypothesis.stateful import invariant

from oracle.machine import Oracle

ROLES = ("producer", "consumer")


class RedisOracle(Oracle):
    """The Redis engine against the memory engine."""

    observer: redis.Redis

    def key(self, part: str) -> bytes:
        return self.bindings[1].key(part)

    def exists(self) -> bool:
        return bool(self.observer.exists(self.key("bound")))

    def blocked(self) -> set[str]:
        """The connections that wait."""
        return {seen["id"] for seen in self.observer.client_list() if "b" in seen["flags"]}

    def new_place(self) -> Callable[[], bool]:
        before = self.blocked()
        return lambda: bool(self.blocked() - before)

    @invariant()
    def each_role_has_one_token(self) -> None:
        if not self.exists():
            assert waiting.lasting(self.observer, f"*{self.name}*") == []
            return
        for role in ROLES:
            free = self.observer.llen(self.key(f"{role}_free"))
            granted = self.observer.llen(self.key(f"{role}_granted"))
            ticket = self.observer.hget(self.key(f"{role}_holder"), "ticket")
            held = ticket not in (None, b"granted")
            assert free + granted + held == 1, (role, free, granted, ticket)

    @invariant()
    def the_sign_says_whether_there_is_room(self) -> None:
        if self.exists():
            stats = self.stats()
            signs = self.observer.llen(self.key("not_full"))
            assert signs == (stats.maxsize == 0 or stats.length < stats.maxsize), stats

    def end_all(self) -> None:
        super().end_all()
        assert waiting.lasting(self.observer, f"*{self.name}*") == []

    def no_caller_waits(self) -> None:
        if self.exists():
            for role in ROLES:
                assert self.observer.llen(self.key(f"{role}_free")) == 1
                assert self.observer.llen(self.key(f"{role}_granted")) == 0
                assert self.observer.exists(self.key(f"{role}_holder")) == 0
