"""Which requests the dashboard answers, and which of them may change queues."""

from __future__ import annotations

import re
import socket

import httpx
import inside
import pytest
from cli.runs import MAIN, python, running
from click.testing import CliRunner
from dashboards import TOKEN, forms, serving

from pressure_mp import Queue, TaskQueue
from pressure_mp.cli import statuses
from pressure_mp.cli.app import app


@pytest.fixture
def options(name):
    return {"url": f"memory://{name}", "prefix": name}


@pytest.fixture
def jobs(options):
    queue = Queue(0, "jobs", **options)
    queue.put_many([1, 2, 3])
    return queue


def form_that_does(dashboard, path, do, id=False):
    """A form of a page; with ``id`` one that is for a single item."""
    return next(
        form for form in forms(dashboard.page(path)) if form["do"] == do and ("id" in form) == id
    )


def test_forms_of_the_pages_mend_queues(options, jobs):
    for item in (b"one", b"two", b"three"):
        inside.run(jobs, inside.operations(jobs).reject(item))
    tasks = TaskQueue("tasks", **options)
    tasks.put_many([1, 2, 3])
    for _ in range(3):
        tasks.take().bury(error="broken")
    with serving(**options, allow_actions=True) as dashboard:

        def does(path, do, id=False):
            answer = dashboard.submit(form_that_does(dashboard, path, do, id))
            assert answer.status_code == 200, answer.text
            return answer.text

        page = "/queue?name=jobs&kind=fifo"
        assert "1 put back." in does(page, "requeue", id=True)
        assert "1 removed." in does(page, "drop", id=True)
        assert jobs.rejected() == [b"three"]
        assert "1 put back." in does(page, "requeue")
        assert "5 dropped." in does(page, "empty")
        assert "is shut down." in does(page, "shut_down")
        assert jobs.is_shutdown
        does(page, "remove")
        assert not jobs.exists()
        page = "/queue?name=tasks&kind=tasks"
        assert "is paused." in does(page, "pause")
        assert tasks.stats().paused
        assert "is resumed." in does(page, "resume")
        assert not tasks.stats().paused
        id = tasks.put(1, tube="a")
        page = "/queue?name=tasks"
        assert "a 1 0 0 0 0 0 open" in dashboard.text(page)
        form = next(one for one in forms(dashboard.page(page)) if one.get("id") == "a")
        assert form["do"] == "pause"
        dashboard.submit(form)
        assert (tasks.stats().paused, tasks.stats().paused_tubes) == (False, ("a",))
        form = next(one for one in forms(dashboard.page(page)) if one.get("id") == "a")
        assert form["do"] == "resume"
        dashboard.submit(form)
        assert tasks.stats().paused_tubes == ()
        tasks.kill(id)
        page = "/tasks?name=tasks&state=B"
        assert "1 put back." in does(page, "requeue", id=True)
        assert "1 removed." in does(page, "drop", id=True)
        assert "1 removed." in does("/queue?name=tasks&kind=tasks", "drop")
        assert tasks.stats().words["ready"] == 1


def test_without_allow_actions_nothing_is_changed_and_no_form_offers_it(options, jobs):
    with serving(**options) as dashboard:
        assert forms(dashboard.page("/queue?name=jobs")) == []
        assert dashboard.submit({"name": "jobs", "do": "empty"}).status_code == 403
    assert jobs.qsize() == 3


def test_a_form_that_another_site_could_send_does_nothing(options, jobs):
    with serving(**options, allow_actions=True) as dashboard:
        form = form_that_does(dashboard, "/queue?name=jobs", "empty")
        for change, headers in (
            ({"form_token": "0" * 64}, {}),
            ({"form_token": ""}, {}),
            ({}, {"Origin": "http://evil.example"}),
            ({}, {"Origin": "null"}),
            ({}, {"Origin": ""}),
            ({}, {"Sec-Fetch-Site": "same-site"}),
            ({}, {"Content-Type": "text/plain"}),
            ({"padding": "x" * 70_000}, {}),
            ({}, {"Cookie": ""}),
        ):
            answer = dashboard.submit({**form, **change}, **headers)
            assert (answer.status_code, jobs.qsize()) == (403, 3), (change, headers)
        with dashboard.new_browser() as other:  # its session is another one
            other.get("/")
            assert dashboard.submit(form, other).status_code == 403
        assert jobs.qsize() == 3
        assert dashboard.submit(form).status_code == 200
    assert jobs.qsize() == 0


def test_a_token_is_asked_for_and_opens_everything_until_one_logs_out(options, jobs):
    with serving(**options, token=TOKEN, allow_actions=True) as dashboard:
        browser = dashboard.browser
        for path in ("/", "/queue?name=jobs", "/health", "/nothing", "/nothing/at/all"):
            answer = browser.get(path)
            assert answer.url.path == "/login"
            assert "jobs" not in answer.text

        def login(said):
            headers = {"Origin": dashboard.url}
            return browser.post("login", data={"token": said}, headers=headers)

        assert login("another token than that").status_code == 401
        assert browser.get("/").url.path == "/login"
        assert "jobs" in login(TOKEN).text
        (cookie,) = browser.cookies.jar
        assert TOKEN not in cookie.value
        assert dashboard.submit(form_that_does(dashboard, "/queue?name=jobs", "empty")).is_success
        forged = cookie.value.partition(".")[0] + ".99999999999." + "0" * 64
        with dashboard.new_browser() as other:
            other.cookies.set(cookie.name, forged)
            assert other.get("/").url.path == "/login"
        kept = cookie.value
        browser.post("logout", headers={"Origin": dashboard.url})
        assert browser.get("/").url.path == "/login"
        browser.cookies.set(cookie.name, kept)
        assert browser.get("/").url.path == "/login"


def test_below_a_path_of_another_application_every_link_leads_to_it(options, jobs):
    with serving(**options, below="/queues", token=TOKEN, allow_actions=True) as dashboard:
        browser = dashboard.browser
        login = browser.get("/workers")
        assert login.url.path == "/queues/login"
        browser.post("login", data={"token": TOKEN}, headers={"Origin": dashboard.url})
        page = dashboard.page("/")
        links = set(re.findall(r'(?:href|src|action)="([^"]*)"', page))
        assert {"static/dashboard.js", "workers", "queue?name=jobs&amp;kind=fifo"} <= links
        for link in links - {"#content", "logout"}:
            assert browser.get(f"/{link}").url.path.startswith("/queues/"), link
            assert browser.get(f"/{link}").status_code == 200, link
        done = dashboard.submit(form_that_does(dashboard, "/queue?name=jobs", "empty"))
        assert done.url.path == "/queues/queue"
    assert jobs.qsize() == 0


def test_a_program_says_the_token_in_a_header(options, jobs):
    with serving(**options, token=TOKEN, allow_actions=True) as dashboard:
        program = dashboard.browser
        form = {"name": "jobs", "do": "empty"}
        program.headers["Authorization"] = "Bearer nonsense"
        assert program.get("/").status_code == 401
        assert program.post("act", data=form).status_code == 403
        assert jobs.qsize() == 3
        program.headers["Authorization"] = f"Bearer {TOKEN}"
        assert "jobs" in program.get("/").text
        assert "3 dropped." in program.post("act", data=form).text
        assert jobs.qsize() == 0


def test_only_names_that_lead_here_by_right_are_answered(options, jobs):
    with serving(**options, hosts=["dash.example"]) as dashboard:
        for host, status in (
            ("localhost", 200),
            ("192.0.2.1:8700", 200),
            ("[::1]:8700", 200),
            ("Dash.example", 200),
            ("evil.example", 421),
            ("localhost.evil.example:8700", 421),
            ("evil.example:nonsense", 421),
            ("", 421),
        ):
            answer = dashboard.browser.get("/", headers={"Host": host})
            assert answer.status_code == status, host
            assert ("jobs" in answer.text) == (status == 200), host


def test_every_answer_says_what_a_browser_may_do_with_it(options, jobs):
    with serving(**options, token=TOKEN) as dashboard:
        for path in ("/", "/login", "/static/dashboard.js", "/nothing", "/static/secret"):
            answer = dashboard.browser.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
    with serving(**options) as dashboard:
        page = dashboard.browser.get("/queue?name=jobs")
        assert "SameSite=lax" in page.headers["set-cookie"]
        assert "HttpOnly" in page.headers["set-cookie"]
        assert not any(
            text in page.text for text in (" style=", " onclick=", "<style", "javascript:")
        )
        assert page.text.count("<script") == 1
        assert '<script src="static/dashboard.js" defer>' in page.text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--bind", "0.0.0.0"], "give a --token"),
        (["--token", ""], "can be guessed"),
        (["--bind", "0.0.0.0", "--token", "short"], "can be guessed"),
        (["--url", "memory://"], "private to one program"),
    ],
)
def test_the_command_refuses_a_missing_or_weak_token_and_a_private_broker(arguments, complaint):
    url = [] if "--url" in arguments else ["--url", "redis://127.0.0.1:1"]
    result = CliRunner().invoke(app, ["dashboard", "--port", "0", *arguments, *url])
    assert result.exit_code == 2, result.output
    assert complaint in result.output


def test_the_command_says_why_it_cannot_serve(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = ["dashboard", "--port", port, "--url", "redis://127.0.0.1:1"]
        result = CliRunner().invoke(app, command)
        assert (result.exit_code, "Address already in use" in result.output) == (1, True)
    monkeypatch.setenv("PRESSURE_DASHBOARD_TOKEN", "")
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, "TOKEN is empty" in result.output) == (2, True)


def test_the_command_serves_until_ctrl_c(valkey, name):
    queue = Queue(0, "jobs", url=valkey.url, prefix=name)
    command = python(MAIN, "dashboard", "--port", "0", "--url", valkey.url, "--token", "random")
    with running(command, name) as run:
        said = [run.process.stderr.readline() for _ in range(2)]
        token, url = (line.split()[-1] for line in said)
        assert "jobs" in httpx.get(url, headers={"Authorization": f"Bearer {token}"}).text
        run.interrupt()
        assert run.outcome() == (statuses.INTERRUPTED, "", "Interrupted.\n")
    queue.delete()
