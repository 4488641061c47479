"""`muntin dashboard`: what it serves, and what it says about wrong arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from muntin.dashboard.command import chosen
from muntin.dashboard.live_stream import LiveStream
from muntin.errors import QueryError
from muntin.query_file import loads
from tests.dashboard.streams import TRANSCRIPT, query

QUERY = """
[stream]
time = "t"
[windows.ten]
type = "tumbling"
length = 10
[aggregates.n]
function = "count"
"""


def test_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(QUERY)
    (tmp_path / "t.csv").write_text("t\n1\n4\n12\n")
    command = [sys.executable, "-m", "muntin", "dashboard", "q.toml", "t.csv", "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as served:
        try:
            assert served.stdout is not None
            line = served.stdout.readline()
            address = line.split()[-1]
            assert address.startswith("http://127.0.0.1:"), line
            with urlopen(address, timeout=10) as page:
                assert "Muntin" in page.read().decode()
            with urlopen(f"{address}/events", timeout=10) as frames:  # a page is open
                assert frames.readline().startswith(b"data: ")
                for _ in range(2):  # an impatient user
                    served.send_signal(signal.SIGINT)
                _, errors = served.communicate(timeout=20)
        finally:
            served.kill()
    assert (served.returncode, errors) == (130, "")


def test_arguments_choose_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(TRANSCRIPT)
    stream = chosen(None, [], None, path, speed=3)
    assert isinstance(stream, LiveStream)
    assert [feed.title for feed in stream.feeds] == ["late_tuple", "wrong_expectation"]
    assert stream.speed == 3
    assert chosen(None, [], None, None).title == "Flights from New York"


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    from muntin.command_line.settings import InputSettings

    with pytest.raises(QueryError, match="shows one stream"):
        chosen(query(), ["x.csv"], InputSettings(), tmp_path)
    with pytest.raises(QueryError, match="needs tuples"):
        chosen(loads(QUERY), [], InputSettings(), None)
    path = tmp_path / "no.yaml"
    path.write_text("transcripts: 3")
    with pytest.raises(QueryError, match="must be a mapping with a list"):
        chosen(None, [], None, path)
    for body in (b"a: [1\n b", b"\xff\xfe\x00"):
        path.write_bytes(body)
        with pytest.raises(QueryError, match="is not valid YAML"):
            chosen(None, [], None, path)
