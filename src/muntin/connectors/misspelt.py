"""Names that differ by a slip of the hand: of fields in records, and of columns in a declared schema."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from muntin.errors import DataError, nearest

__all__ = ["check_declared", "misspelt_field", "similar"]


@lru_cache(maxsize=4096)  # sparse records ask for the same names again and again
def similar(one: str, other: str) -> bool:
    """Whether two names differ only in case, in separators, or by one slip of the hand.

    A slip is a letter too many or too few, two letters swapped or, in names of five letters or more, a wrong
    one. Digits never count: x and y, price and price2 are two columns.

    >>> [similar("amount", name) for name in ("Amount", "amuont", "amout", "amounts", "amoumt")]
    [True, True, True, True, True]
    >>> [similar(one, other) for one, other in (("x", "y"), ("price", "price2"), ("amount", "account"))]
    [False, False, False]
    """
    a, b = (name.casefold().translate(_SEPARATORS) for name in sorted((one, other), key=len))
    if a == b:
        return True
    if len(b) - len(a) == 1:
        return any(a == b[:i] + b[i + 1 :] and b[i].isalpha() for i in range(len(b)))
    if len(a) != len(b):
        return False
    wrong = [i for i in range(len(a)) if a[i] != b[i]]
    if len(wrong) == 2:
        i, j = wrong
        return j == i + 1 and a[i] == b[j] and a[j] == b[i]
    return len(wrong) == 1 and len(a) >= 5 and a[wrong[0]].isalpha() and b[wrong[0]].isalpha()


_SEPARATORS = str.maketrans("", "", "_- .")


def misspelt_field(
    fields: Collection[str], reads: Iterable[str], known: Collection[str]
) -> tuple[str, str] | None:
    """The column that a record lacks and the field that it has in its place, if one is probably the other.

    A record may lack a field, which is then null. But if it has another field, new in the stream and with a
    `similar` name, that name is taken as misspelt.

    >>> misspelt_field({"ts", "amuont"}, ["ts", "amount"], {"ts", "amount", "shop"})
    ('amount', 'amuont')
    >>> misspelt_field({"ts", "refund"}, ["ts", "amount"], {"ts", "amount", "shop"})
    """
    for column in reads:
        if column not in fields:
            for field in fields:
                if field not in known and similar(column, field):
                    return column, field
    return None


def check_declared(
    declared: Mapping[str, object], reads: Collection[str] | None, names: Collection[str], all_there: bool
) -> None:
    """A DataError for a column of `schema=` that the first tuples lack and that no query reads.

    A table has all of its columns: `all_there`. Of records, later ones may have more fields, so only a name
    that is similar to one that is not declared counts.
    """
    for name in declared:
        if name in names or (reads is not None and name in reads):
            continue
        others = [other for other in (*names, *(reads or ())) if other not in declared]
        meant = next((other for other in others if similar(name, other)), None)
        if meant is not None or (all_there and names):
            hint = f' Did you mean "{meant}"?' if meant is not None else nearest(name, others)
            shown = f'got "{name}"; the columns are {", ".join(names)}'
            raise DataError(f"schema must name columns of the input: {shown}.{hint}")
