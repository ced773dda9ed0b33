"""The list of CPython's tests that do not pass here is true, and users can read it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from stdlib.differences import DIFFERENCES
from stdlib.running import NO_TEST_PACKAGE

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
MODULES = {
    "_TestQueue": "test._test_multiprocessing",
    "BaseQueueTestMixin": "test.test_queue",
    "BaseSimpleQueueTest": "test.test_queue",
    **dict.fromkeys(
        ("QueueBasicTests", "QueueGetTests", "QueuePutTests", "_QueueJoinTestMixin"),
        "test.test_asyncio.test_queues",
    ),
    "_QueueShutdownTestMixin": "test.test_asyncio.test_queues",
}


def test_the_document_names_exactly_the_listed_tests():
    row = re.compile(r"^\| `(\w+\.test_\w+)` \| \S", re.MULTILINE)
    assert sorted(row.findall(DOCUMENT.read_text("utf-8"))) == sorted(DIFFERENCES)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_listed_test_still_exists(name):
    if sys.version_info < DIFFERENCES[name].since:
        pytest.skip(f"the test came with Python {'.'.join(map(str, DIFFERENCES[name].since))}")
    suite, _, test = name.partition(".")
    module = pytest.importorskip(MODULES[suite], reason=NO_TEST_PACKAGE)
    assert hasattr(getattr(module, suite), test)
