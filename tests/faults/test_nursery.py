"""The processes of the fault suite: how they ended is known of each, and what they wrote."""

from __future__ import annotations

import signal

import pytest
from waiting import until


def start(nursery, **options):
    """One that tries for a minute to reach a broker."""
    url = "redis://127.0.0.1:1"
    return nursery.start(
        "put_tasks", name="x", options={"url": url, "reconnect": 60, **options}, seed=1, items=1
    )


def test_a_client_that_fails_is_told_of_in_its_own_words(nursery):
    start(nursery, serializer="nothing of that name").send(signal.SIGKILL)
    start(nursery, serializer="no such thing")
    with pytest.raises(
        AssertionError, match=r"put_tasks1.* ended by status 1:(.|\n)*no such thing"
    ):
        nursery.wait(30)


def test_a_client_that_others_killed_is_told_of(nursery):
    client = start(nursery)
    client.send(signal.SIGKILL)
    client.signals.clear()
    with pytest.raises(AssertionError, match="ended by SIGKILL"):
        nursery.wait(30)


def test_a_client_with_the_process_id_of_a_client_that_ended_has_not_ended(nursery):
    former = start(nursery)
    former.send(signal.SIGKILL)
    until(lambda: nursery.has_ended(former))
    client = start(nursery)
    client.pid = former.pid
    assert not nursery.has_ended(client)
