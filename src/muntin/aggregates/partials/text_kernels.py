"""Compiled joining of texts."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.aggregates.texts import Bytes
from muntin.compiled_kernels import compiled


@compiled
def join_texts(rows: Ints, starts: Ints, data: Bytes, separator: Bytes) -> tuple[Ints, Bytes]:
    """The texts `rows[j]:rows[j + 1]` as one, for each j: where each begins, and their bytes.

    Text i is `data[starts[i]:starts[i + 1]]`.
    """
    joined = np.zeros(rows.size, np.int64)
    for j in range(rows.size - 1):
        a, b = rows[j], rows[j + 1]
        joined[j + 1] = joined[j] + starts[b] - starts[a] + separator.size * max(0, b - a - 1)
    out = np.empty(joined[-1], np.uint8)
    for j in range(rows.size - 1):
        a, b = rows[j], rows[j + 1]
        if separator.size == 0:
            out[joined[j] : joined[j + 1]] = data[starts[a] : starts[b]]
            continue
        k = joined[j]
        for i in range(a, b):
            if i > a:
                for byte in separator:
                    out[k] = byte
                    k += 1
            for place in range(starts[i], starts[i + 1]):
                out[k] = data[place]
                k += 1
    return joined, out
