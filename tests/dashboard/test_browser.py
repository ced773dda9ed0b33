"""The dashboard in a real Chromium, driven over its DevTools protocol: ``tox -e browser``.

They run where selenium, Chromium and its driver are installed (Debian: ``chromium-driver``).
"""

from __future__ import annotations

import shutil

import inside
import pytest
from dashboards import TOKEN, serving
from waiting import until

from pressure_mp import Queue, TaskQueue

webdriver = pytest.importorskip("selenium.webdriver")
By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not there"),
]
#: Without a break, and with what would run if it were not escaped.
LONG = "a_name_without_any_break_" * 12
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"
VIEWS = (
    *("", "queue?name=jobs", f"queue?name={LONG}", "tasks?name=tasks", "queue?name=tasks"),
    *("workers", "pipeline", "health", "login", "queue?name=nothing"),
)


@pytest.fixture(scope="module")
def chromium():
    """One for all tests."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # As root it has no sandbox; a container's /dev/shm is small.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """It, as a new user has it. No script fails, and the policy forbids nothing."""
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.get_log("browser")
    yield chromium
    log = chromium.get_log("browser")
    assert [one for one in log if one["source"] in ("javascript", "security")] == []


@pytest.fixture
def options(name):
    return {"url": f"memory://{name}", "prefix": name}


@pytest.fixture
def jobs(options):
    queue = Queue(5, "jobs", **options)
    queue.put_many([HOSTILE, {"key": LONG}])
    inside.run(queue, inside.operations(queue).reject(b"\x80\x05 aside"))
    return queue


def show(browser, theme, width):
    """The system's theme, and how wide the window is."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def press(browser, *keys):
    webdriver.ActionChains(browser).send_keys(*keys).perform()


def focused(browser):
    return browser.execute_script("return document.activeElement.innerText")


def text_of(browser, selector="main"):
    """Asked in one step: the page may renew itself between two."""
    return browser.execute_script("return document.querySelector(arguments[0]).innerText", selector)


@pytest.mark.parametrize(
    ("theme", "width", "page"),
    [("light", 375, "rgb(255, 255, 255)"), ("dark", 1280, "rgb(20, 23, 28)")],
)
def test_every_view_follows_the_theme_and_never_scrolls_sideways(
    browser, options, jobs, theme, width, page
):
    Queue(0, LONG, **options).put_many([LONG])
    tasks = TaskQueue("tasks", **options)
    tasks.put_many([LONG, HOSTILE])
    tasks.take().bury(error=ValueError(LONG + HOSTILE))
    show(browser, theme, width)
    with serving(**options, show_content=True, allow_actions=True) as dashboard:
        for view in VIEWS:
            browser.get(f"{dashboard.url}/{view}")
            widths = "return [document.documentElement.scrollWidth, innerWidth]"
            scrolled, inner = browser.execute_script(widths)
            assert scrolled <= inner == width, view
            colour = "return getComputedStyle(document.body).backgroundColor"
            assert browser.execute_script(colour) == page, view
            assert browser.title.endswith("· pressure_mp"), view


@pytest.mark.parametrize("has_content", [False, True])
def test_eight_tasks_are_on_one_screen_of_a_phone(browser, options, has_content):
    tasks = TaskQueue("tasks", **options, authkey=b"k" * 16)
    tasks.put_many([LONG] * 9, tube="a tube")
    for _ in range(9):
        tasks.take().bury(error=ValueError(LONG))
    show(browser, "light", 390)
    with serving(**options, show_content=has_content) as dashboard:
        browser.get(f"{dashboard.url}/tasks?name=tasks")
        ends = browser.execute_script(
            "return [...document.querySelectorAll('.tasks tbody tr')]"
            ".map((row) => row.getBoundingClientRect().bottom)"
        )
        assert len(ends) == 9
        assert ends[7] <= 800
        assert text_of(browser).count("ValueError") == 9
        assert text_of(browser).count("Signed: all with key") == has_content
        assert text_of(browser).count("signed with key") == 0


def test_keys_lead_everywhere_and_the_focus_is_seen(browser, options, jobs):
    show(browser, "light", 1280)
    Queue.create("other", **options)
    with serving(**options) as dashboard:
        browser.get(dashboard.url)
        press(browser, "?")
        assert "pause the page" in text_of(browser, "#keys")
        press(browser, Keys.ESCAPE)
        press(browser, "j")
        assert focused(browser) == "jobs"
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        assert browser.execute_script(outline) == "solid"
        press(browser, "j")
        assert focused(browser) == "other"
        press(browser, "k")
        press(browser, Keys.ENTER)
        until(lambda: browser.title == "jobs · pressure_mp")
        press(browser, "u")
        until(lambda: browser.title == "Queues · pressure_mp")
        press(browser, "/")
        press(browser, "oth?r", Keys.ENTER)
        until(lambda: "find=oth" in browser.current_url)
        assert text_of(browser, "tbody").startswith("other")
        press(browser, "g")
        press(browser, "h")
        until(lambda: browser.title == "Health · pressure_mp")


def test_a_page_renews_itself_and_keeps_what_its_reader_does(browser, options, jobs):
    show(browser, "light", 1280)
    with serving(**options, show_content=True) as dashboard:
        browser.get(f"{dashboard.url}/queue?name=jobs")
        summary = browser.find_element(By.CSS_SELECTOR, "#items li summary")
        summary.click()
        jobs.put("third")

        def shown(text):
            return text in text_of(browser)

        until(lambda: shown("The queue holds 3 of 5 items"))
        until(lambda: shown("third"))
        assert shown("PROTO"), "what was opened stays open"
        assert focused(browser) == "opcodes"
        press(browser, "p")
        assert text_of(browser, "#hold") == "Resume"
        jobs.put("fourth")
        press(browser, "p")
        until(lambda: shown("fourth"))
        assert browser.title == "jobs · pressure_mp"
        jobs.delete()
        until(lambda: shown("does not exist"))


def test_a_queue_is_purged_after_one_has_logged_in_and_is_sure(browser, options, jobs):
    show(browser, "light", 375)
    with serving(**options, token=TOKEN, allow_actions=True) as dashboard:
        browser.get(f"{dashboard.url}/queue?name=jobs")
        press(browser, TOKEN, Keys.ENTER)
        until(lambda: browser.title == "Queues · pressure_mp")
        browser.get(f"{dashboard.url}/queue?name=jobs")
        browser.find_element(By.XPATH, "//summary[text()='Purge…']").click()
        assert jobs.qsize() == 2
        browser.find_element(By.XPATH, "//button[text()='Yes, purge']").click()
        until(lambda: "2 dropped." in text_of(browser))
        assert jobs.qsize() == 0
        browser.find_element(By.XPATH, "//button[text()='Log out']").click()
        until(lambda: browser.title == "Log in · pressure_mp")
