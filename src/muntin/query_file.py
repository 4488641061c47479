"""Queries as TOML files, for the command line and for people who do not write Python."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from muntin.dsl import Query
from muntin.errors import MissingFileError, QueryError, nearest, value_text
from muntin.query import files

to_toml = files.to_toml


def load(path: str | PathLike[str]) -> Query:
    """The query in a TOML file.

    Raises QueryError, with the file and the table in it, for anything that is not
    understood, and for a file that is not there; nothing is ignored.
    """
    if not isinstance(path, str | PathLike):
        raise QueryError(
            f'load takes the path of a query file, like "query.toml": got {value_text(path)}; '
            "open files and bytes are not read"
        )
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise QueryError(f"{path} is not a text in UTF-8: {error}") from None
    except FileNotFoundError as error:
        whole = Path(path).absolute()
        hint = nearest(whole.name, (other.name for other in whole.parent.glob("*.toml")))
        raise MissingFileError(f"there is no file {whole}; give the path of a query file.{hint}") from error
    except (OSError, ValueError) as error:  # the latter for a path with a null byte
        why = getattr(error, "strerror", None) or error
        raise QueryError(
            f"cannot read {value_text(fspath(path))}: {why}; give the path of a query file"
        ) from error
    return loads(text, str(path))


def loads(text: str, source: str = "query") -> Query:
    """The query in the text of a TOML file; errors call it `source`.

    >>> query = loads('''
    ... [stream]
    ... time = "ts"
    ... [windows.minute]
    ... type = "tumbling"
    ... length = "1 minute"
    ... [aggregates.total]
    ... function = "sum"
    ... column = "amount"
    ... ''')
    >>> query
    mt.windows(minute=w.tumbling(length='1 minute')).aggregate(total=a.sum(column='amount')).on('ts')
    """
    if not isinstance(text, str):
        raise QueryError(f"loads takes the text of a query file: got {value_text(text)}; decode bytes first")
    return files.loads(text, source, Query)
