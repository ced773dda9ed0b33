"""The dashboard as an ASGI application."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..administration.broker import Broker
from ..engines import registry
from ..exceptions import (
    ArgumentError,
    BrokerUnavailable,
    PressureError,
    QueueDoesNotExistError,
    TaskNotFound,
)
from . import actions
from .markup import element
from .monitor import Monitor
from .pages import health, layout, listing, queue, tasks, workers
from .pages.layout import Context
from .security import AccessCheck, Sessions
from .settings import Settings

#: The most bytes of a form.
_LARGEST_FORM = 1 << 16
_STATIC = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def make_app(
    url: str | None = None, prefix: str | None = None, settings: Settings | None = None
) -> ASGIApp:
    """Make the dashboard of a broker, for any ASGI server; with ``memory://`` for the queues of the
    server's own program.

    ``url`` and ``prefix`` mean the same as for :class:`pressure_mp.Queue`. It may be mounted below
    a path, with a slash at its end. No request goes to the broker before the application starts, or
    its first page is requested; the pages show later errors. Raises AddressError.
    """
    # A server that removes keys is shown too: the dashboard has to report it.
    broker = Broker(url, prefix, {**os.environ, "PRESSURE_ALLOW_EVICTION": "1"})
    shown = registry.resolve(url, prefix=prefix).url
    chosen = settings or Settings()
    return _App(Monitor(broker, chosen.interval), shown, chosen).asgi


class _App:
    def __init__(self, monitor: Monitor, url: str, settings: Settings) -> None:
        self._monitor = monitor
        self._url = url
        self._settings = settings
        self._sessions = Sessions(settings.token)
        self._doctor = health.Doctor(monitor.broker)
        pages: dict[str, Callable[[Context], str]] = {
            "/": listing.make,
            "/queue": queue.make,
            "/tasks": tasks.make,
            "/task": tasks.make_one,
            "/workers": workers.make_workers,
            "/pipeline": workers.make_pipeline,
            "/health": lambda context: health.make(context, self._doctor),
        }
        routes = [Route(path, self._page(make)) for path, make in pages.items()]
        routes += [
            Route("/act", self._act, methods=["POST"]),
            Route("/login", self._show_login),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/static/{name}", _static),
        ]
        app = Starlette(routes=routes, lifespan=self._lifespan)
        self.asgi: ASGIApp = AccessCheck(app, settings, self._sessions)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._monitor.start()
        try:
            yield
        finally:
            await run_in_threadpool(self._monitor.stop)

    def _page(self, make: Callable[[Context], str]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:  # in a thread, as it calls the broker
            response = HTMLResponse()
            session = self._sessions.of(request) or self._sessions.begin(request, response)
            context = self._context(layout.query_of(request.url.query), session)
            try:
                response.body = response.render(make(context))
            except PressureError as error:
                # An address with a name that this broker cannot have leads to no page.
                response.status_code = 404 if isinstance(error, ArgumentError) else _status(error)
                response.body = response.render(_error(context, error))
            response.headers["Content-Length"] = str(len(response.body))
            return response

        return answer

    def _context(self, query: dict[str, str], session: str) -> Context:
        form_token = self._sessions.form_token(session)
        return Context(self._monitor, self._url, self._settings, query, form_token)

    async def _act(self, request: Request) -> Response:
        if not self._settings.allow_actions:
            return PlainTextResponse("Start the dashboard with --allow-actions.\n", 403)
        form = await _read_form(request)
        session = self._sessions.of(request) or ""
        is_program = self._sessions.has_header(request)
        if not is_program and not (
            session and self._sessions.is_form_token(session, form.get("form_token", ""))
        ):
            return PlainTextResponse("The form is of another session: load the page again.\n", 403)
        context = self._context(form, session)
        try:
            return RedirectResponse(await run_in_threadpool(actions.do, context), 303)
        except PressureError as error:
            return HTMLResponse(_error(context, error), _status(error))

    def _show_login(self, request: Request) -> Response:
        return HTMLResponse(_login_page())

    async def _login(self, request: Request) -> Response:
        form = await _read_form(request)
        if not self._sessions.is_token(form.get("token", "")):
            return HTMLResponse(_login_page(is_wrong=True), 401)
        response = RedirectResponse("./", 303)
        self._sessions.begin(request, response)
        return response

    async def _logout(self, request: Request) -> Response:
        response = RedirectResponse("login", 303)
        self._sessions.end(request, response)
        return response


async def _read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; none if it is too long, or of another kind."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            return {}
    try:
        return layout.query_of(body.decode())
    except ValueError:
        return {}


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.\n", 404)
    content = (files(__package__) / "static" / name).read_bytes()
    return Response(content, media_type=_STATIC[name], headers={"Cache-Control": "no-cache"})


def _status(error: PressureError) -> int:
    if isinstance(error, (QueueDoesNotExistError, TaskNotFound)):
        return 404
    return 503 if isinstance(error, BrokerUnavailable) else 409


def _error(context: Context, error: PressureError) -> str:
    return layout.page(
        context,
        "Error",
        layout.heading("error"),
        layout.live("error", element("p", str(error), class_="alarm", role="alert")),
    )


def _login_page(is_wrong: bool = False) -> str:
    field = element(
        "input",
        type="password",
        name="token",
        autocomplete="current-password",
        required=True,
        autofocus=True,
    )
    form = element(
        "form",
        element("h1", "pressure_mp"),
        element("p", "That is not the token.", class_="alarm", role="alert") if is_wrong else None,
        element("label", "The dashboard's token ", field),
        element("button", "Log in"),
        method="post",
        action="login",
        class_="login",
    )
    return layout.document("Log in", element("main", form))
