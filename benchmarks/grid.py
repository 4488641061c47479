"""A table of texts, for a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells under headings; columns of words stand left, those of numbers behind them.

    >>> grid = Grid(("workload", "M/s"), [("W1", "410"), ("W2", "135")], words=1, bold=[1, None])
    >>> print(grid.as_markdown())
    | workload | M/s |
    |---|---:|
    | W1 | **410** |
    | W2 | 135 |
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    bold: Sequence[int | None] | None = None
    """The cell of each row that is to be seen first."""

    def as_markdown(self) -> str:
        """For the documentation."""
        rule = "|" + "---|" * self.words + "---:|" * (len(self.headings) - self.words)
        rows = [
            [f"**{cell}**" if i == bold else cell for i, cell in enumerate(row)]
            for row, bold in zip(self.rows, self._bold, strict=True)
        ]
        head, *body = [f"| {' | '.join(row)} |" for row in (self.headings, *rows)]
        return "\n".join([head, rule, *body])

    def as_table(self) -> Table:
        """For a terminal. Numbers are never cut off; headings of several words may break."""
        table = Table(box=box.SIMPLE_HEAD, padding=0)
        for i, heading in enumerate(self.headings):
            table.add_column(
                heading,
                justify="left" if i < self.words else "right",
                min_width=max(len(word) for word in [*(row[i] for row in self.rows), *heading.split()]),
            )
        for row, bold in zip(self.rows, self._bold, strict=True):
            table.add_row(*(Text(cell, style="bold" if i == bold else "") for i, cell in enumerate(row)))
        return table

    @property
    def _bold(self) -> Sequence[int | None]:
        return self.bold or [None] * len(self.rows)
