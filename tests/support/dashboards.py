"""A dashboard on a socket, in a thread of the test's own process."""

from __future__ import annotations

import html
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from waiting import LIMIT, until

from pressure_mp.dashboard.app import make_app
from pressure_mp.dashboard.settings import Settings

TOKEN = "a token of the tests"


class Dashboard:
    """Where it is, and a browser without scripts."""

    def __init__(self, url: str, below: str) -> None:
        self.url = url
        self.below = below
        self.browser = self.new_browser()

    def new_browser(self) -> httpx.Client:
        return httpx.Client(  # without what TLS would need, which takes long
            base_url=self.url + self.below, timeout=LIMIT, follow_redirects=True, verify=False
        )

    def page(self, path: str, status: int = 200) -> str:
        """The HTML of a page."""
        answer = self.browser.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def text(self, path: str, status: int = 200) -> str:
        """What a page says, without its elements."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.page(path, status))).split())

    def submit(
        self, form: dict[str, str], browser: httpx.Client | None = None, **headers: str
    ) -> httpx.Response:
        """Send a form, as a browser does from the dashboard's own page."""
        sent = {"Origin": self.url, "Sec-Fetch-Site": "same-origin", **headers}
        return (browser or self.browser).post("act", data=form, headers=sent)


def forms(page: str) -> list[dict[str, str]]:
    """What the forms of a page that change queues say when they are sent."""
    found = re.findall(r'<form method="post" action="act".*?</form>', page, re.DOTALL)
    fields = r'name="([^"]*)" value="([^"]*)"'
    return [
        {name: html.unescape(value) for name, value in re.findall(fields, form)} for form in found
    ]


@contextmanager
def serving(
    url: str, prefix: str | None = None, below: str = "", **settings: Any
) -> Iterator[Dashboard]:
    """A dashboard of that broker, mounted ``below`` a path if that is asked for."""
    app = make_app(url, prefix, Settings(**{"interval": 0.05, **settings}))
    if below:
        app = Starlette(routes=[Mount(below, app)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        dashboard = Dashboard(f"http://127.0.0.1:{listening.getsockname()[1]}", below)
        try:
            until(lambda: server.started or not thread.is_alive())
            yield dashboard
        finally:
            dashboard.browser.close()
            server.should_exit = True
            thread.join()
