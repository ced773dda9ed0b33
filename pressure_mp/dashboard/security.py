"""Access to the pages: logins, forms, and the requests that are refused.

Against other sites that the same browser shows: the cookie is ``SameSite=Lax``, each form has a
token that belongs to it, and the ``Origin`` of a request must be the dashboard itself. Against
names that are made to lead here (DNS rebinding): the ``Host`` must be a known one.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import Settings

#: Seconds after which a browser has to log in again.
_LOGGED_IN_FOR = 12 * 3600
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers send "Origin: null" with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Sessions:
    """Browsers, by a signed cookie. Only ended sessions are kept here, so requests cannot fill the
    memory. The key is made anew each time, so a restart ends all sessions."""

    def __init__(self, token: str | None) -> None:
        self._key = secrets.token_bytes(32)
        self._token = None if token is None else _digest(token)
        #: The sessions that have logged out, and when their cookies end.
        self._ended: dict[str, int] = {}

    def is_token(self, said: str) -> bool:
        """Tell whether ``said`` is the token; takes the same time for every text."""
        return self._token is not None and hmac.compare_digest(_digest(said), self._token)

    def of(self, request: Request) -> str | None:
        """Return the id of the browser's session, if its cookie is valid and has not ended."""
        id, _, rest = request.cookies.get(_cookie_name(request), "").partition(".")
        ends, _, signature = rest.partition(".")
        if not ends.isdecimal() or len(ends) > 12 or int(ends) < time.time():
            return None
        is_ours = hmac.compare_digest(signature.encode(), self._sign(f"{id}.{ends}").encode())
        return id if is_ours and id not in self._ended else None

    def begin(self, request: Request, response: Response) -> str:
        """Give the browser a new session; return its id."""
        id, ends = secrets.token_urlsafe(16), int(time.time()) + _LOGGED_IN_FOR
        value = f"{id}.{ends}.{self._sign(f'{id}.{ends}')}"
        response.set_cookie(
            _cookie_name(request),
            value,
            max_age=_LOGGED_IN_FOR,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return id

    def end(self, request: Request, response: Response) -> None:
        now, id = int(time.time()), self.of(request)
        self._ended = {one: ends for one, ends in self._ended.items() if ends > now}
        if id is not None:
            self._ended[id] = now + _LOGGED_IN_FOR
        response.delete_cookie(_cookie_name(request), httponly=True, samesite="lax")

    def form_token(self, id: str) -> str:
        """Return the token of a session's forms, which another site cannot know."""
        return self._sign(f"form {id}")

    def is_form_token(self, id: str, said: str) -> bool:
        return hmac.compare_digest(said.encode(), self.form_token(id).encode())

    def may_see(self, request: Request) -> bool:
        """Tell whether the reply to a request may show queues."""
        return self._token is None or self.has_header(request) or self.of(request) is not None

    def has_header(self, request: Request) -> bool:
        """Tell whether a program sent the token, in the header ``Authorization``."""
        scheme, _, said = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(said)

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _cookie_name(request: Request) -> str:
    """Return the cookie's name. Cookies know no ports: each dashboard of a host has its own
    name."""
    port = urlsplit(f"//{request.headers.get('host', '')}").port or 0
    return f"pressure_mp_{port}"


class AccessCheck:
    """Refuses requests before anything is done for them, and adds headers that limit what a browser
    may do with a reply."""

    def __init__(self, app: ASGIApp, settings: Settings, sessions: Sessions) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in settings.hosts)}
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if not self._is_known(request.headers):
            return PlainTextResponse(
                "This dashboard does not know this host name: start it with --host NAME.\n", 421
            )
        is_change = request.method not in ("GET", "HEAD")
        if is_change and not self._sessions.has_header(request) and not _is_from_here(request):
            return PlainTextResponse("This form was not sent from the dashboard's own page.\n", 403)
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if path == "/login" or path.startswith("/static/") or self._sessions.may_see(request):
            return None
        if is_change or "authorization" in request.headers:
            return PlainTextResponse(
                "Log in first, or send the header Authorization: Bearer TOKEN.\n",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        return RedirectResponse("../" * (path.count("/") - 1) + "login", 303)

    def _is_known(self, headers: Headers) -> bool:
        try:
            parts = urlsplit(f"//{headers.get('host', '')}")
            host, _ = parts.hostname or "", parts.port  # both may be none
        except ValueError:
            return False
        if host in self._hosts:
            return True
        try:  # an address in digits cannot be another site's name
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True


def _is_from_here(request: Request) -> bool:
    """Tell whether the browser says that the request comes from a page of this dashboard."""
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    host = request.headers.get("host", "")
    return site == "same-origin" and origin.partition("://")[2].lower() == host.lower() != ""
