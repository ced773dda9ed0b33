"""Tests of the service, which need no server: ``PRESSURE_URL=memory:// pytest``."""

import threading
from types import SimpleNamespace

import pytest
from jobs import make_report, reports
from starlette.testclient import TestClient
from web import app


def test_a_report_counts_the_words():
    assert make_report(SimpleNamespace(data={"text": "one two"}))["words"] == 2


def test_a_text_without_words_is_refused():
    with pytest.raises(ValueError, match="no words"):
        make_report(SimpleNamespace(data={"text": " "}))


@pytest.fixture
def worker():
    stop = threading.Event()
    thread = threading.Thread(target=reports.run, kwargs={"stop": stop})
    thread.start()
    yield
    stop.set()
    thread.join()


def test_a_report_is_ordered_made_and_fetched(worker):
    with TestClient(app) as client:
        id = client.post("/reports", json={"text": "one two three"}).json()["id"]
        assert reports.result(id, timeout=5)["words"] == 3
        assert client.get(f"/reports/{id}").json()["words"] == 3


def test_a_report_that_no_worker_makes_is_not_ready():
    with TestClient(app) as client:
        id = client.post("/reports", json={"text": "one"}).json()["id"]
        assert client.get(f"/reports/{id}").status_code == 202
        assert client.get("/reports/1").status_code == 404
    reports.kill(id)
