"""Pages of the site that are not in this folder: a hook of mkdocs.

The files beside README.md are pages, with their links as the site has them; the reference is made
of the docstrings of all that the package exports. Nothing may be missing there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import pressure_mp
from pressure_mp import aio

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}

QUEUES = ("Queue", "JoinableQueue", "SimpleQueue", "LifoQueue", "PriorityQueue", "FairQueue")
BROKERS = (
    "list_queues",
    "examine_broker",
    "QueueSummary",
    "Stats",
    "Diagnosis",
    "Snapshot",
    "Finding",
)
EXECUTORS = ("Executor", "Future")
VERSION = "__version__"


def exported() -> dict[str, Any]:
    """All that ``from pressure_mp import *`` gives."""
    return {name: getattr(pressure_mp, name) for name in pressure_mp.__all__ if name != VERSION}


def reference() -> dict[str, tuple[str, list[str]]]:
    """Of each page of the reference its title, and the full names of what is on it."""
    every = exported()
    exceptions = [
        name
        for name, one in every.items()
        if isinstance(one, type) and issubclass(one, BaseException)
    ]
    known = {*exceptions, *QUEUES, *BROKERS, *EXECUTORS, "PressureQueue"}
    tasks = [name for name in every if name not in known]
    strange = [
        name
        for name in tasks
        if not name.startswith(("Task", "Tube", "Exponential", "RateLimit", "PeriodicTask"))
    ]
    assert not strange, f"{strange} are on no page of the reference: see docs/build_site.py"
    return {
        "queues": ("Queues", in_package([*QUEUES, "PressureQueue"])),
        "tasks": ("Tasks", in_package(sorted(tasks, key=lambda name: name != "TaskQueue"))),
        "executors": ("Executors", in_package(EXECUTORS)),
        "asyncio": ("asyncio", [f"pressure_mp.aio.{name}" for name in aio.__all__]),
        "brokers": ("Brokers", in_package(BROKERS)),
        "exceptions": ("Exceptions", in_package(exceptions)),
        "monitoring": (
            "Monitoring and tests",
            [
                "pressure_mp.telemetry.otel",
                "pressure_mp.telemetry.prometheus",
                "pressure_mp.telemetry.durations",
                "pressure_mp.telemetry.json_logs",
                "pressure_mp.testing",
            ],
        ),
    }


def in_package(names: Iterable[str]) -> list[str]:
    return [f"pressure_mp.{name}" for name in names]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in this folder, and the examples."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    for path in (ROOT / "examples").iterdir():
        if path.suffix in (".py", ".sh"):
            # As text, which a browser shows.
            target = f"examples/{path.name}.txt"
            files.append(File.generated(config, target, content=path.read_text()))
    for page, (title, names) in reference().items():
        text = "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)])
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return re.sub(r"\]\(([^)#:\s]+)", lambda found: f"]({place(found[1])}", markdown)


def place(target: str) -> str:
    """Where the site has what a link leads to, seen from its uppermost folder."""
    target = target.removeprefix("../").removeprefix("docs/")
    if target.startswith("examples/"):
        return f"{target}.txt"
    return PAGES.get(target, target)
