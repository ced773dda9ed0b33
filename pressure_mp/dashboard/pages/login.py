"""The page that asks for the token."""

from __future__ import annotations

from ..markup import element
from . import layout


def make(is_wrong: bool = False) -> str:
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
