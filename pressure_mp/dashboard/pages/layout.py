"""The parts of all pages: the head, the links to the other pages, the keys, tables, and items: of
these nothing is unpickled, and nothing is longer than a screen."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from ...administration.broker import Broker, Named
from ...encoding.display import content_of, opcodes_of
from ...operations import phrases
from ..markup import Child, Markup, element, link_to
from ..monitor import Monitor
from ..settings import Settings

#: The most bytes of an item that is read, and the most characters and opcodes that are shown.
_LARGEST, _LONGEST, _MOST_OPCODES = 1 << 18, 2_000, 200
#: The text of an empty cell.
NOTHING = "–"
#: Whether a process lives, in words.
ALIVE = {True: "alive", False: "has ended", None: "not known"}
#: The pages about all queues: their address, their title, and their key after `g`.
_PAGES = (
    ("./", "Queues", "q"),
    ("pipeline", "Pipeline", "p"),
    ("workers", "Workers", "w"),
    ("health", "Health", "h"),
)
#: The heads of columns of numbers, which end at the same place.
_NUMBERS = (
    *("Bound", "In/s", "Out/s", "In flight", "Rejected", "Taken", "Tasks", "Consumers"),
    *("Ready", "Buried", "Zombie", "Done", "At a time"),
)
_KEYS = (
    ("?", "these keys"),
    ("/", "to the filter"),
    ("j  k", "to the next, the previous queue or task"),
    ("Enter", "open it"),
    ("u", "back to all queues"),
    *((f"g {key}", title.lower()) for _, title, key in _PAGES),
    ("p", "pause the page, or resume"),
    ("Esc", "close, or leave the filter"),
)


@dataclass(frozen=True)
class Context:
    """The input of a page: the queues, the broker's URL, the settings, the query, and the token of
    its forms."""

    monitor: Monitor
    url: str
    settings: Settings
    query: dict[str, str]
    form_token: str

    @property
    def broker(self) -> Broker:
        return self.monitor.broker

    def number(self, name: str, default: int, most: int) -> int:
        asked = self.query.get(name, "")
        return min(int(asked), most) if asked.isdecimal() and len(asked) < 9 else default


def page(context: Context, title: str, *body: Child, here: str = "") -> str:
    ways = [
        element("a", name, href=where, aria_current="page" if where == here else None)
        for where, name, _ in _PAGES
    ]
    if context.settings.token is not None:
        ways.append(element("form", element("button", "Log out"), method="post", action="logout"))
    return document(
        title,
        element(
            "header",
            element("a", "Skip to the content", href="#content", class_="skip"),
            element("strong", "pressure_mp"),
            element("nav", ways, aria_label="Pages"),
            element(
                "div",
                element("span", context.url, class_="broker"),
                element("span", "", id="state", role="status"),
                element("button", "Pause", type="button", id="hold", hidden=True),
                element("button", "?", type="button", id="ask", aria_label="Keys", hidden=True),
                class_="tools",
            ),
        ),
        element("main", body, id="content", tabindex=-1),
        _keys(),
        element("noscript", element("p", "Scripts are off: reload the page to see changes.")),
        interval=context.settings.interval,
    )


def document(title: str, *body: Child, interval: float | None = None) -> str:
    """Make the page around a body; with ``interval`` the page is renewed so often, in seconds."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{title} · pressure_mp"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="static/dashboard.css"),
        element("script", src="static/dashboard.js", defer=True) if interval else None,
    )
    shown = element("body", body, data_interval=interval)
    return f"<!doctype html>\n{element('html', head, shown, lang='en')}\n"


def heading(*parts: Child) -> Markup:
    """Make the head of a page to which the page of all queues leads."""
    up = element("a", "Queues", href="./", id="up")
    return element("h1", up, [(" / ", part) for part in parts])


def live(id: str, *children: Child) -> Markup:
    """Make a part of a page that the script renews."""
    return element("div", children, id=id, data_live=True)


def _keys() -> Markup:
    rows = [
        element("div", element("dt", element("kbd", key)), element("dd", text))
        for key, text in _KEYS
    ]
    return element(
        "dialog",
        element("h2", "Keys"),
        element("dl", rows),
        element("form", element("button", "Close"), method="dialog"),
        id="keys",
    )


def table(heads: list[str], rows: list[Markup], empty: str, **attributes: str) -> Markup:
    """Make a table of rows from :func:`row`; without rows the sentence ``empty`` instead."""
    if not rows:
        return element("p", empty, class_="note")
    head = element(
        "tr",
        [
            element("th", text, scope="col", class_="number" if text in _NUMBERS else None)
            for text in heads
        ],
    )
    shown = element("table", element("thead", head), element("tbody", rows), **attributes)
    return element("div", shown, class_="table")


def row(heads: list[str], cells: list[Child], class_: str | None = None) -> Markup:
    """Make a row. On a phone its cells are below each other, each with its head, and empty cells
    are left out."""
    return element(
        "tr",
        [
            element(
                "td",
                element("div", cell, class_="value"),
                data_label=head,
                class_=_class_of(head, cell),
            )
            for head, cell in zip(heads, cells, strict=True)
        ],
        class_=class_,
    )


def _class_of(head: str, cell: Child) -> str | None:
    of_column = "number" if head in _NUMBERS else ""
    return f"{of_column} {'nothing' if cell in ('0', NOTHING) else ''}".strip() or None


def facts(pairs: list[tuple[str, Child]]) -> Markup:
    return element(
        "dl",
        [element("div", element("dt", what), element("dd", value)) for what, value in pairs],
        class_="facts",
    )


def action(
    context: Context,
    queue: Named,
    do: str,
    title: str,
    warning: str = "",
    id: str = "",
    back: str = "",
) -> Markup | None:
    """Make a form that changes a queue; a form with a ``warning`` has to be opened first. None
    unless the dashboard may change anything."""
    if not context.settings.allow_actions:
        return None
    hidden = {"name": queue.name, "kind": queue.discipline, "do": do, "id": id, "back": back}
    form = element(
        "form",
        [
            element("input", type="hidden", name=key, value=value)
            for key, value in {**hidden, "form_token": context.form_token}.items()
            if value
        ],
        element("p", warning) if warning else None,
        element("button", f"Yes, {title.lower()}" if warning else title),
        method="post",
        action="act",
        class_="action",
    )
    if not warning:
        return form
    return element(
        "details", element("summary", f"{title}…"), form, class_="action", id=f"do-{do}-{id}"
    )


def process(id: str, host: str | None, pid: int | None) -> str:
    """Name a process; another implementation's client by its id."""
    return id if host is None else f"pid {pid} on {host}"


def queue_link(queue: tuple[str, str]) -> Markup:
    name, kind = queue
    where = link_to("queue", name=name, kind=kind)
    return element("a", name or "(no name)", href=where, class_="queue")


def with_commands(text: str) -> list[Child]:
    """Make a sentence in which commands are between backquotes."""
    parts = text.split("`")
    return [element("code", part) if place % 2 else part for place, part in enumerate(parts)]


def turn(address: str, query: dict[str, str], start: int, shown: int, there: int) -> Markup | None:
    """Make the links to the parts of a list of which ``shown`` entries are on a page, if it has
    several parts."""
    if there <= shown:
        return None

    def way(text: str, to: int) -> Child:
        if not 0 <= to < there or to == start:
            return None
        return element("a", text, href=link_to(address, **{**query, "start": to or None}))

    return element(
        "nav",
        way("Previous", max(start - shown, 0)),
        element("span", f"{start + 1} to {min(start + shown, there)} of {number(there)}"),
        way("Next", start + shown),
        aria_label="Parts of the list",
        class_="turn",
    )


def duration(seconds: float | None) -> str:
    """Write a time that has passed, where it is known."""
    return NOTHING if seconds is None else phrases.duration(seconds)


def number(value: float) -> str:
    return f"{value:,.0f}"


def rate(value: float) -> str:
    return number(value) if value >= 100 or not value else f"{value:.1f}"


def query_of(text: str) -> dict[str, str]:
    """Read the fields of an address, or of a form. Of a name that comes twice, the last counts.
    Returns none if there are more than any page's."""
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=50))
    except ValueError:
        return {}


def mark_of(item: bytes) -> str:
    """Return a text that identifies an item that was set aside."""
    return hashlib.sha256(item).hexdigest()


def signatures(items: Iterable[bytes], are_shown: bool) -> Markup | None:
    """Say with which keys items claim to be signed, if any does and they ``are_shown``."""
    keys = Counter(content_of(one).key for one in items if are_shown and len(one) <= _LARGEST)
    signed = {key: number for key, number in keys.items() if key is not None}
    if not signed:
        return None
    parts = [f"{number:,} with key {key}" for key, number in signed.items()]
    if len(keys) == 1:
        parts = [f"all with key {key}" for key in signed]
    elif None in keys:
        parts.append(f"{keys[None]:,} not")
    return element(
        "p", f"Signed: {', '.join(parts)}. Signatures are not checked here.", class_="note"
    )


def show(item: bytes, is_shown: bool) -> Markup:
    """Show an item; unless it ``is_shown``, only its size."""
    if not is_shown:
        return element("span", f"{len(item):,} bytes, hidden", class_="note")
    if len(item) > _LARGEST:
        return element("span", f"{len(item):,} bytes: too large for a page", class_="note")
    content = content_of(item)
    text = content.unsigned
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    head = element("span", content.kind, class_="kind")
    opcodes = opcodes_of(item, _MOST_OPCODES)
    if not opcodes:
        return element("div", head, " ", element("code", text), class_="content")
    listed = element(
        "details",
        element("summary", "opcodes"),
        element("pre", "\n".join(opcodes)),
        id=f"opcodes-{mark_of(item)[:16]}",
    )
    return element("div", head, " ", element("code", text), listed, class_="content")
