"""An executor without workers, and workers that are threads of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from executors.threads import Workers

from pressure_mp import Executor


@pytest.fixture
def executor(url: str, name: str) -> Iterator[Executor]:
    with Executor(0, name, url=url) as executor:
        yield executor
        executor.shutdown(cancel_futures=True)
    executor._queue.delete()


@pytest.fixture
def workers(executor: Executor) -> Iterator[Workers]:
    workers = Workers(executor._queue)
    yield workers
    workers.end()
