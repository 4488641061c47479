"""Results on the terminal, in colour."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from muntin.results import Results
from muntin.results.text_table import TextTable

STYLES = {"update": "yellow", "retract": "red", "early": "dim"}
MOST = 40


def show_table(results: Results, console: Console, most: int = MOST) -> None:
    """Print the first `most` result rows; updates and retractions are coloured.

    A table that is wider than the terminal continues below, with the columns that say what a row is.
    """
    table = TextTable.of(results.to_arrow(nested=True), most)
    styles = ["bold", *(STYLES.get(kind, "") for kind in table.kinds)]
    for part in table.within(console.width):
        for line, style in zip(part.lines(), styles, strict=True):
            console.print(Text(line, style=style), no_wrap=True, overflow="ellipsis", crop=True)
    console.print(Text(table.remark, style="dim"))
