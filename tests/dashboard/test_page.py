"""The page in a real browser: charts appear, numbers move, a window is added, and mistakes are shown."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muntin.dashboard.feeds import of_transcripts
from muntin.dashboard.live_stream import LiveStream
from muntin.dashboard.server import running
from tests.dashboard.streams import TRANSCRIPT, endless, failing

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs a browser: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
SECONDS = 30
"""To wait for what the page should show."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[[LiveStream], LiveStream]]:
    """Opens the page of a stream, of a laptop; what the browser complains about fails the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def opened(stream: LiveStream, width: int = 1280, dark: bool = False) -> LiveStream:
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            browser.get(stack.enter_context(running(stream)))
            return stream

        yield opened
        complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        browser.get("about:blank")  # closes its connection
    # A refused command is an answer that the browser lists, too.
    assert [one for one in complaints if "400 (Bad Request)" not in one] == []


def script(browser: Any, code: str) -> Any:
    return browser.execute_script(f"return {code}")


def text(browser: Any, selector: str) -> str:
    return str(script(browser, f"(document.querySelector({selector!r}) || {{}}).textContent || ''"))


def count(browser: Any, selector: str) -> int:
    return int(script(browser, f"document.querySelectorAll({selector!r}).length"))


def until(browser: Any, holds: Callable[[], Any]) -> Any:
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, SECONDS, poll_frequency=0.05).until(lambda _: holds())


def press(browser: Any, keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(keys).perform()


def write(browser: Any, name: str, definition: str) -> None:
    """Fill the form with a window and send it, as a user does."""
    from selenium.webdriver.common.by import By

    for field, words in (("add-name", name), ("add-text", definition)):
        element = browser.find_element(By.ID, field)
        element.clear()
        element.send_keys(words)
    browser.execute_script(
        "arguments[0].click()", browser.find_element(By.CSS_SELECTOR, "#add button[type=submit]")
    )


def test_charts_appear_and_numbers_move(browser: Any, opened: Any) -> None:
    stream = opened(LiveStream([endless()]))
    until(browser, lambda: count(browser, "#strip .window") > 3 and count(browser, "#strip .slice") > 1)
    until(browser, lambda: count(browser, "#lines path.curve") == 1)
    until(browser, lambda: count(browser, "#results tbody tr") > 3)
    assert "Two shops" in browser.title
    before = text(browser, "#numbers .remark")
    until(browser, lambda: text(browser, "#numbers .remark") != before)
    assert text(browser, "#summary dd").startswith("2 aggregates over 2 windows")
    assert stream.state == "playing"


def test_the_page_does_not_grow_while_a_stream_plays_on(browser: Any, opened: Any) -> None:
    stream = opened(LiveStream([endless(rate=200)], speed=20))
    sizes = []
    for results in (500, 1_500, 3_000):
        until(browser, lambda most=results: stream.history.given > most)
        sizes.append(count(browser, "*"))
    assert text(browser, "#state") == "playing"
    # 3,000 results have passed; elements are those of the strip, with at most some hundred windows.
    assert max(sizes) < 1_500


def test_a_window_that_is_added_gives_results_and_a_wrong_one_its_error(browser: Any, opened: Any) -> None:
    stream = opened(LiveStream([endless()]))
    until(browser, lambda: count(browser, "#add-type option") > 10)
    write(browser, "five", 'type = "tumbling"\nlenght = "5 minutes"')
    until(browser, lambda: 'unknown key "lenght"' in text(browser, "#add-outcome"))
    assert "five" not in dict(stream.query.windows)
    write(browser, "five", 'type = "tumbling"\nlength = "5 minutes"')
    until(browser, lambda: "is served" in text(browser, "#add-outcome"))
    until(browser, lambda: "five" in text(browser, "#results tbody"))
    until(browser, lambda: count(browser, '#strip .window[data-name="five"]') > 1)
    assert "+ computes" in text(browser, "#notes")
    browser.execute_script("document.querySelector('[aria-label=\"Remove window five\"]').click()")
    until(browser, lambda: "five" not in text(browser, "#windows"))


def test_what_users_write_is_text_on_the_page(browser: Any, opened: Any) -> None:
    opened(LiveStream([endless()]))
    until(browser, lambda: count(browser, "#add-type option") > 10)
    write(browser, "<img src=x onerror=document.title='bad'>", 'type = "tumbling"\nlength = "5 minutes"')
    until(browser, lambda: "<img" in text(browser, "#windows"))
    until(browser, lambda: "<img" in text(browser, "#strip"))
    assert count(browser, "main img") == 0
    assert "Two shops" in browser.title


def test_keys_play_step_zoom_and_change_the_colours(browser: Any, opened: Any) -> None:
    stream = opened(LiveStream([endless()]))
    until(browser, lambda: count(browser, "#levels button") == 3)
    press(browser, " ")
    until(browser, lambda: text(browser, "#state") == "paused")
    done = stream.steps_done
    press(browser, "\ue014")  # the right arrow
    until(browser, lambda: stream.steps_done == done + 1)
    press(browser, "2")
    until(
        browser,
        lambda: script(browser, "document.querySelectorAll('#levels button')[1].ariaPressed") == "true",
    )
    press(browser, "+")
    until(browser, lambda: stream.speed == 2)
    light = script(browser, "getComputedStyle(document.body).backgroundColor")
    press(browser, "t")
    until(browser, lambda: script(browser, "getComputedStyle(document.body).backgroundColor") != light)
    press(browser, "?")
    until(browser, lambda: script(browser, "document.getElementById('keys').open"))


def test_a_transcript_is_stepped_through(browser: Any, opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(TRANSCRIPT)
    stream = opened(LiveStream(of_transcripts(path)))
    until(browser, lambda: "No tuple yet" in text(browser, "#strip"))
    for number in range(1, 6):
        press(browser, "\ue014")
        until(browser, lambda done=number: f"step {done} of 5" in text(browser, "#replay-done"))
    until(browser, lambda: "7 → 12" in text(browser, "#strip"))
    assert text(browser, "#steps li.now") == "watermark 11"
    assert stream.state == "paused"


def test_an_error_of_the_stream_is_shown(browser: Any, opened: Any) -> None:
    opened(LiveStream([failing()]))
    until(browser, lambda: "The stream has stopped" in text(browser, "#trouble"))
    assert text(browser, "#state") == "error"
    assert text(browser, "#play") == "Again"


def test_a_hidden_page_closes_its_connection_until_it_is_visible(browser: Any, opened: Any) -> None:
    opened(LiveStream([endless()]))
    until(browser, lambda: count(browser, "#strip .window") > 3)

    def hide(hidden: bool) -> None:
        value = str(hidden).lower()
        browser.execute_script(
            f"Object.defineProperty(document, 'hidden', {{value: {value}, configurable: true}});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )

    hide(True)
    assert script(browser, "source") is None
    before = text(browser, "#numbers .remark")
    hide(False)
    until(browser, lambda: text(browser, "#numbers .remark") != before)
    assert text(browser, "#trouble") == ""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [375, 1280])
def test_it_fits_a_phone_and_a_laptop(browser: Any, opened: Any, width: int, dark: bool) -> None:
    opened(LiveStream([endless()]), width, dark)
    until(browser, lambda: count(browser, "#strip .window") > 3)
    assert script(browser, "document.documentElement.scrollWidth") <= width
    fits = "Math.abs(document.querySelector('#strip svg').getBoundingClientRect().width"
    assert script(browser, f"{fits} - document.querySelector('#strip').clientWidth)") < 12
    shade = script(browser, "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (shade < 128) == dark


def test_it_shows_that_the_connection_is_lost(browser: Any) -> None:
    with running(LiveStream([endless()])) as address:
        browser.get(address)
        until(browser, lambda: count(browser, "#strip .window") > 3)
    until(browser, lambda: "connection to Muntin is lost" in text(browser, "#trouble"))
    assert count(browser, "#strip .window") > 3  # the last state
    browser.get("about:blank")
    browser.get_log("browser")
