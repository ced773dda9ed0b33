"""The user of docs/security.md, which has the rights that queues need, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import redis

from brokers.servers import Server

DOCUMENT = Path(__file__).parents[3] / "docs" / "security.md"
PASSWORD = "least rights"


def line() -> list[str]:
    """The document's command, word by word."""
    (found,) = re.findall(r"^ACL SETUSER .*$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    return [word.replace("PASSWORD", PASSWORD) for word in found.split(" ")]


def granted() -> list[str]:
    """The commands that the user may use, as ``blmove`` or ``script|load``."""
    return [word.removeprefix("+") for word in line() if word.startswith("+")]


def make_user(client: redis.Redis, name: str = "app", without: str | None = None) -> None:
    """Make the user at a server, under another name and without one of the commands if asked."""
    words = [word for word in line() if word != f"+{without}"]
    words[words.index("app")] = name
    client.execute_command(*words)


def url(server: Server, name: str = "app") -> str:
    """A server's URL with the login of that user."""
    return f"redis://{name}:{quote(PASSWORD)}@127.0.0.1:{server.port}/0"


def refusals(client: redis.Redis, name: str = "app") -> set[str]:
    """The commands and keys that the user was refused since the log was last emptied."""
    log = client.execute_command("ACL LOG", 128)
    return {entry["object"] for entry in log if entry["username"] == name}


class LimitedServer(Server):
    """A server with that user, which tests use there."""

    def prepare(self) -> None:
        with self.client() as client:
            make_user(client)

    def check(self) -> None:
        with self.client() as client:
            assert refusals(client) == set(), "docs/security.md grants too little"

    @property
    def limited_url(self) -> str:
        return url(self)
