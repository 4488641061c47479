"""The server of the page: who may use it, what it answers, what it refuses."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from muntin.dashboard.access import COOKIE, Access
from muntin.dashboard.live_stream import LiveStream
from muntin.dashboard.server import _listening, running
from muntin.errors import QueryError
from tests.dashboard.streams import endless

HOST = {"host": "127.0.0.1:80"}


@pytest.fixture
def stream() -> LiveStream:
    return LiveStream([endless(rate=100)])


@pytest.fixture
def address(stream: LiveStream) -> Iterator[str]:
    with running(stream) as found:
        yield found


def ask(
    address: str, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
    finally:
        connection.close()


def command(address: str, **body: object) -> tuple[int, dict[str, str]]:
    status, text, _ = ask(address, "POST", "/command", json.dumps(body), origin=address)
    return status, json.loads(text)


def frames(address: str, number: int) -> list[dict[str, object]]:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request("GET", "/events?width=800")
        answer = connection.getresponse()
        found: list[dict[str, object]] = []
        while len(found) < number:
            line = answer.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
        return found
    finally:
        connection.close()


def test_page_runs_its_own_script_and_nothing_else(address: str) -> None:
    status, page, headers = ask(address, "GET", "/")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http://" not in page
    assert "https://" not in page
    for name in ("page.js", "page.css", "icon.svg"):
        status, text, _ = ask(address, "GET", f"/{name}")
        assert status == 200
        assert "https://" not in text
        assert "eval(" not in text
        assert "innerHTML" not in text
    assert ask(address, "GET", "/server.py")[0] == 404
    assert ask(address, "GET", "/..%2fserver.py")[0] == 404


def test_frames_arrive_and_numbers_move(address: str) -> None:
    first, *others = frames(address, 4)
    assert {"head", "strip", "numbers", "plan"} <= set(first)
    assert any("numbers" in frame for frame in others)


def test_commands_change_the_stream(address: str, stream: LiveStream) -> None:
    assert command(address, do="pause") == (200, {})
    assert stream.state == "paused"
    before = stream.steps_done
    command(address, do="step")
    assert stream.steps_done == before + 1
    command(address, do="speed", speed=8)
    assert stream.speed == 8
    status, _ = command(
        address, do="add", kind="window", name="five", text='type = "tumbling"\nlength = "5 minutes"'
    )
    assert (status, "five" in dict(stream.query.windows)) == (200, True)
    assert command(address, do="remove", kind="window", name="five")[0] == 200
    templates = command(address, do="templates")[1]["templates"]
    assert templates["window"]["session"] == 'type = "session"\ngap = "15 minutes"'  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"do": "fly"}, "a command must be like"),
        ({"do": ["play"]}, "a command must be like"),
        ({"do": "speed", "speed": "fast"}, "speed must be a number"),
        ({"do": "speed", "speed": 1e9}, "the speed must be from"),
        ({"do": "add", "kind": "window"}, "lacks 'name'"),
        ({"do": "key", "key": 7}, "key must be a text"),
        ({"do": "remove", "kind": "window", "name": "tan"}, 'Did you mean "ten"'),
        ({"do": "choose", "title": "x"}, "there is no stream"),
        ({"do": "speed", "speed": 10**400}, "the speed must be from"),
        ({"do": "key", "key": "\ud800"}, "printable characters only"),
        ({"do": "add", "kind": "window", "name": "\ud800", "text": "x = 1"}, "printable characters only"),
        ({"do": "add", "kind": "window", "name": "a\x00", "text": "x = 1"}, "printable characters only"),
        ({"do": "add", "kind": "nothing", "name": "a", "text": "x = 1"}, 'got "nothing"'),
        (
            {"do": "add", "kind": "aggregate", "name": "ten", "text": 'function = "count"'},
            "choose another name",
        ),
    ],
)
def test_a_wrong_command_gets_its_error(address: str, body: dict[str, object], message: str) -> None:
    status, answer = command(address, **body)
    assert status == 400
    assert message in answer["error"]


def test_a_defect_is_named_and_not_taken_for_a_lost_connection(
    address: str, stream: LiveStream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def defect(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(stream, "set_speed", defect)
    assert command(address, do="speed", speed=2) == (500, {"error": "ZeroDivisionError: a defect"})
    monkeypatch.setattr(stream, "look", defect)
    assert frames(address, 1) == [{"trouble": "ZeroDivisionError: a defect"}]
    assert "Traceback" in capsys.readouterr().err


def test_a_command_that_is_no_json_or_too_long_is_refused(address: str) -> None:
    for body, status in (("{", 400), ("[" * 10_000, 400), ("x" * 20_000, 413)):
        assert ask(address, "POST", "/command", body, origin=address)[0] == status


def test_a_page_elsewhere_can_change_nothing(address: str, stream: LiveStream) -> None:
    command(address, do="pause")
    for origin in ("http://evil.example", "null", address.replace("127.0.0.1", "localhost"), ""):
        status, text, _ = ask(address, "POST", "/command", '{"do": "play"}', origin=origin)
        assert status == 403, origin
        assert "from the page itself" in text
    assert ask(address, "POST", "/command", '{"do": "play"}')[0] == 403
    assert stream.state == "paused"


def test_another_name_of_the_host_is_refused(address: str) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1:1", "[::1", ""):
        assert ask(address, "GET", "/", host=host)[0] in (400, 403), host


def test_a_token_opens_the_page_and_then_its_cookie_does(stream: LiveStream) -> None:
    with running(stream, "127.0.0.1", token="secret") as found:
        address, _, query = found.partition("/?")
        assert query == "token=secret"
        assert ask(address, "GET", "/")[0] == 403
        assert ask(address, "GET", "/events")[0] == 403
        assert ask(address, "GET", "/?token=wrong")[0] == 403
        status, _, headers = ask(address, "GET", f"/?{query}")
        assert status == 200
        cookie = headers["set-cookie"]
        assert cookie.startswith(f"{COOKIE}=secret")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert ask(address, "GET", "/page.js", cookie=f"{COOKIE}=secret")[0] == 200
        assert ask(address, "GET", "/page.js", cookie=f"{COOKIE}=other")[0] == 403


def test_other_hosts_than_loopback_have_a_token() -> None:
    assert Access.to("127.0.0.1", 80).token is None
    access = Access.to("0.0.0.0", 80)
    assert access.token is not None
    assert len(access.token) > 20
    assert access.refusal({"host": "machine:80"}, access.token, changes=False) is None
    assert access.refusal({"host": "machine:80"}, None, changes=False) is not None
    assert access.refusal({"host": "machine:80"}, access.token, changes=True) is not None


def test_a_port_in_use_is_named() -> None:
    taken = _listening("127.0.0.1", 0)
    try:
        with pytest.raises(QueryError, match="choose another with --port"):
            _listening("127.0.0.1", taken.getsockname()[1])
    finally:
        taken.close()
