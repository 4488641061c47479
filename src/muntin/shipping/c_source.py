"""The tables of the kernels and the stubs that call them, as C."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

Type: TypeAlias = list[Any]
"""A type of Numba: ["array", dtype, dimensions, layout, read only], ["number", dtype], ["none"],
["tuple", items]."""

ARRAY_WORDS = {1: 7, 2: 9}
"""The words that Numba passes for an array: two owners, size, size of an item, data, shape, strides."""

_C_TYPES = {
    "bool": "int8_t", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t", "float32": "float",
    "float64": "double",
}  # fmt: skip
DTYPES = {name: number for number, name in enumerate(_C_TYPES, start=1)}
"""The types of numbers that kernels take, with their codes in `entry.c`."""

_NUMPY = {"float32": "NPY_FLOAT", "float64": "NPY_DOUBLE", "bool": "NPY_BOOL"}
_LAYOUTS = {"A": 0, "C": 1, "F": 2}
_ALL = 0xFFFFFFFF
_LAYOUT_BITS = 3 << 16
_READ_ONLY = 1 << 18
_ENTRY = Path(__file__).with_name("entry.c")


def c_source(variants: Sequence[dict[str, Any]]) -> str:
    """The source of the library: `entry.c`, then stubs and tables."""
    needed = distinct(variants)
    return "\n".join([_ENTRY.read_text(), *(_stub(variant) for variant in needed), _tables(needed)])


def flattened(types: Sequence[Type]) -> Iterator[Type]:
    """The types of arguments, with the items of a tuple after the tuple."""
    for kind in types:
        yield kind
        if kind[0] == "tuple":
            yield from flattened(kind[1])


def distinct(variants: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The variants with `codes` and `masks`, sorted by kernel; each accepts calls that no other one does.

    A variant takes an array that is read only if its code does not write to it, or if some variant of the
    same kernel was compiled for a read-only array there. It takes an array of any layout if it was compiled
    for strided ones; these variants come last.
    """
    needed: list[dict[str, Any]] = []
    for _, group in groupby(sorted(variants, key=lambda v: str(v["kernel"])), key=lambda v: v["kernel"]):
        same = list(group)
        read = {place for v in same for place, leaf in _leaves(v) if leaf[0] == "array" and leaf[4]}
        own: list[dict[str, Any]] = []
        for variant in sorted(same, key=lambda v: str(v["arguments"]).count("'A'")):
            pairs = [
                _code_and_mask(leaf, place in read or spared)
                for (place, leaf), spared in zip(_leaves(variant), variant["unwritten"], strict=True)
            ]
            codes, masks = [code for code, _ in pairs], [mask for _, mask in pairs]
            own.append({**variant, "codes": codes, "masks": masks})
        needed += [v for i, v in enumerate(own) if not any(_covers(w, v) for w in own[:i])]
    return needed


def _covers(wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
    """Whether one variant takes every call that another takes."""
    return len(wide["codes"]) == len(narrow["codes"]) and all(
        narrow_mask | mask == narrow_mask and narrow_code & mask == code
        for code, mask, narrow_code, narrow_mask in zip(
            wide["codes"], wide["masks"], narrow["codes"], narrow["masks"], strict=True
        )
    )


def _leaves(variant: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Type]]:
    """The arguments and the items of tuples, each with its place."""

    def walk(types: Sequence[Type], above: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Type]]:
        for i, kind in enumerate(types):
            yield (*above, i), kind
            if kind[0] == "tuple":
                yield from walk(kind[1], (*above, i))

    return walk(variant["arguments"], ())


def _code_and_mask(leaf: Type, spared: bool) -> tuple[int, int]:
    """The code that `entry.c` must read for an argument, and the bits of it that count."""
    if leaf[0] == "none":
        return 3, _ALL
    if leaf[0] == "tuple":
        return 4 | len(leaf[1]) << 4, _ALL
    dtype = DTYPES[leaf[1]]
    if leaf[0] == "number":
        return 2 | dtype << 4, _ALL
    mask = _ALL & ~(_READ_ONLY if spared else 0) & ~(_LAYOUT_BITS if leaf[3] == "A" else 0)
    return 1 | dtype << 4 | leaf[2] << 12 | _LAYOUTS[leaf[3]] << 16, mask


def _stub(variant: dict[str, Any]) -> str:
    """The function that passes the arguments to a kernel, and the one that makes Python's result."""
    symbol = variant["symbol"]
    types, values = [], []
    for i, leaf in enumerate(flattened(variant["arguments"])):
        if leaf[0] == "array":
            shape = "VECTOR" if leaf[2] == 1 else "MATRIX"
            types.append(f"{shape}_TYPES")
            values.append(f"{shape}({i}, sizeof({_C_TYPES[leaf[1]]}))")
        elif leaf[0] == "number":
            types.append(_C_TYPES[leaf[1]])
            values.append(f"s[{i}].{_member(leaf[1])}")
        elif leaf[0] == "none":
            types.append("void *")
            values.append("NULL")
    return "\n".join([
        f"extern HIDDEN int {symbol}({', '.join(['void *', 'Raised **', *types])});",
        f"static int call_{symbol}(void *result, Raised **raised, const Slot *s) {{",
        f"    return {symbol}({', '.join(['result', 'raised', *values])});",
        "}",
        _box(symbol, variant["returns"]),
    ])  # fmt: skip


def _member(dtype: str) -> str:
    if dtype in ("float64", "float32"):
        return "real" if dtype == "float64" else "small_real"
    return "natural" if dtype.startswith("u") else "integer"


def _box(symbol: str, returns: Type) -> str:
    if returns[0] == "none":
        return f"#define box_{symbol} none_of"
    body = _boxed(returns, "r->all")
    return "\n".join([
        f"typedef struct {{ {_struct(returns, 'all')} }} Result_{symbol};",
        f"_Static_assert(sizeof(Result_{symbol}) <= LARGEST_RESULT, \"a result is too large\");",
        f"static PyObject *box_{symbol}(void *result, const Arguments *given) {{",
        f"    Result_{symbol} *r = result;",
        f"    return {body};",
        "}",
    ])  # fmt: skip


def _struct(kind: Type, name: str) -> str:
    """The member of a C struct in which Numba returns a value."""
    if kind[0] == "array":
        return f"struct {{ Memory *owner; void *rest[4]; npy_intp axes[{2 * kind[2]}]; }} {name};"
    if kind[0] == "number":
        return f"{_C_TYPES[kind[1]]} {name};"
    if kind[0] == "none":
        return f"void *{name};"
    return "struct { " + " ".join(_struct(item, f"f{i}") for i, item in enumerate(kind[1])) + f" }} {name};"


def _boxed(kind: Type, place: str) -> str:
    """The C expression that makes a Python object of a returned value."""
    if kind[0] == "array":
        number = _NUMPY.get(kind[1], f"NPY_{kind[1].upper()}")
        return f"array_of((Result *)&{place}, {kind[2]}, {number}, given)"
    if kind[0] == "number":
        if kind[1] == "bool":
            return f"PyBool_FromLong({place})"
        if kind[1].startswith("float"):
            return f"PyFloat_FromDouble({place})"
        return f"PyLong_From{'Unsigned' if kind[1].startswith('u') else ''}LongLong({place})"
    if kind[0] == "none":
        return "Py_NewRef(Py_None)"
    items = ", ".join(_boxed(item, f"{place}.f{i}") for i, item in enumerate(kind[1]))
    return f"tuple_of({len(kind[1])}, (PyObject *[]){{{items}}})"


def _tables(variants: Sequence[dict[str, Any]]) -> str:
    """The variants of each kernel, and the kernels by name."""
    lines, entries = [], []
    for n, (name, group) in enumerate(groupby(variants, key=lambda v: v["kernel"])):
        rows = list(group)
        lines.append(f"static const Variant variants_{n}[] = {{")
        for variant in rows:
            codes, masks = (", ".join(f"{x}u" for x in variant[field]) for field in ("codes", "masks"))
            symbol = variant["symbol"]
            lines.append(
                f"    {{{json.dumps(variant['signature'])}, {len(variant['codes'])}, "
                f"(const uint32_t[]){{{codes}}}, (const uint32_t[]){{{masks}}}, "
                f"call_{symbol}, box_{symbol}}},"
            )
        lines.append("};")
        entries.append(f"    {{{json.dumps(name)}, {rows[0]['fixed']}, {len(rows)}, variants_{n}}},")
    return "\n".join([
        *lines,
        "static const Entry entries[] = {",
        *entries,
        "};",
        "static const Entry *find_entry(const char *name) {",
        f"    for (int low = 0, high = {len(entries)}; low < high;) {{",
        "        int middle = (low + high) / 2, order = strcmp(name, entries[middle].name);",
        "        if (order == 0) return &entries[middle];",
        "        if (order < 0) high = middle; else low = middle + 1;",
        "    }",
        "    return NULL;",
        "}",
        "",
    ])  # fmt: skip
