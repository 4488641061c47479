"""The pages tell the truth: their Python runs, prints what they show, and their links lead somewhere.

The convention (CONTRIBUTING.md, "Examples in pages"): every ```python block of a page is run, from the
top of the page down, in one namespace. What a block prints must stand in a ```text block right after
it. A block that cannot run here has `<!-- not run: reason -->` on the line above it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from muntin import aggregates as a
from muntin import testing
from muntin import windows as w
from muntin.connectors import spark

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])

FENCE = re.compile(r"^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: \S[^\n]* -->\n\Z")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Example:
    line: int
    code: str
    shown: str | None


def examples(page: str) -> list[Example]:
    """The blocks of a page that run, each with the output shown for it."""
    fences = list(FENCE.finditer(page))
    found = []
    for i, fence in enumerate(fences):
        if fence["kind"] != "python" or NOT_RUN.search(page[: fence.start()]):
            continue
        shown = None
        for after in fences[i + 1 : i + 2]:
            if after["kind"] == "text" and not page[fence.end() : after.start()].strip():
                shown = after["body"]
        found.append(Example(page.count("\n", 0, fence.start("body")), fence["body"], shown))
    return found


def check(page: str, name: str) -> None:
    """Run the examples of a page and compare what they print with what the page shows."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for example in examples(page):
        printed = io.StringIO()
        code = compile("\n" * example.line + example.code, name, "exec")  # errors give the page's own lines
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102  running the page is the point
        where = f"{name}, line {example.line + 1}"
        if example.shown is None:
            assert printed.getvalue() == "", f"{where}: prints, but no ```text block follows it"
        else:
            assert printed.getvalue() == example.shown, f"{where}: prints something else than the page shows"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # an example that writes a file leaves none behind
    check(page.read_text(), page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    targets = [link["target"].partition("#")[0] for link in LINK.finditer(prose)]
    local = [target for target in targets if target and "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_reference_names_every_public_window_and_aggregate_and_those_of_spark_and_testing() -> None:
    public = [getattr(w, name) for name in w.__all__ if name.islower()]
    public += [getattr(a, name) for name in a.__all__ if name != "col"]  # pyarrow's own
    public += [getattr(testing, name) for name in testing.__all__ if name not in ("VARIANTS", "laws")]
    listed = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert {f"{item.__module__}.{item.__qualname__}" for item in public} - set(listed) == set()
    assert set(spark.__all__) - {name.rpartition(".")[2] for name in listed} == set()


def test_the_page_of_windows_names_every_constructor() -> None:
    page = (ROOT / "docs" / "windows.md").read_text()
    assert [name for name in w.__all__ if name.islower() and f"`w.{name}(" not in page] == []


@pytest.mark.parametrize("name", [name for name in w.__all__ if name.islower()])
def test_the_page_of_windows_names_every_parameter(name: str) -> None:
    page = (ROOT / "docs" / "windows.md").read_text()
    shown = re.search(rf"`w\.{name}\((.*?)\)`:", page)
    assert shown is not None, f"no `w.{name}(...)`: what it is"
    parameters = inspect.signature(getattr(w, name)).parameters
    named = [re.split("[= ]", part)[0] for part in shown[1].split(", ")]
    assert [part for part in named if part != "*"] == list(parameters)


def fenced(kind: str, body: str) -> str:
    return f"```{kind}\n{body}\n```\n"


def test_the_page_of_papers_names_files_and_tests_that_exist() -> None:
    rows = [line for line in (ROOT / "docs" / "papers.md").read_text().splitlines() if line.startswith("|")]
    places = [place for row in rows for place in re.findall(r"`([\w/.]+\.(?:py|yaml)(?:::\w+)?)`", row)]
    assert len(places) > 100
    for place in places:
        file, _, test = place.partition("::")
        found = [path for base in ("", "src/muntin", "tests") if (path := ROOT / base / file).exists()]
        assert found, f"no file {file}"
        assert not test or f"def {test}(" in found[0].read_text(), f"no test {place}"


def test_blocks_of_a_page_share_one_namespace() -> None:
    page = fenced("python", "x = 1") + "Then\n\n" + fenced("python", "print(x + 1)") + fenced("text", "2")
    check(page, "page")


def test_output_that_differs_from_the_page_is_caught() -> None:
    with pytest.raises(AssertionError, match="something else"):
        check(fenced("python", "print(1)") + fenced("text", "2"), "page")


def test_output_that_the_page_hides_is_caught() -> None:
    with pytest.raises(AssertionError, match="page, line 2: prints, but"):
        check(fenced("python", "print(1)") + "prose\n" + fenced("text", "1"), "page")


def test_a_block_marked_as_not_run_is_left_out() -> None:
    check("<!-- not run: needs a cluster -->\n" + fenced("python", "raise SystemExit"), "page")


def test_the_mark_needs_a_reason() -> None:
    with pytest.raises(SystemExit):
        check("<!-- not run: -->\n" + fenced("python", "raise SystemExit"), "page")
