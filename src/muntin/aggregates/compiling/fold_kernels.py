"""The loops over tuples and slices, compiled around one user-defined aggregate.

A partial aggregate is a row of columns, one NumPy array each: the number of tuples, then the user's numbers.
`lift` and `combine` become part of the loops (the code generation of the Reactive Aggregator
[reactive §5.3]). An exception ends a loop; its caller starts over in the interpreter.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from muntin.aggregates.compiling import operation_kernels
from muntin.aggregates.compiling.tracing import Code
from muntin.aggregates.partials.loop_kernels import Loops, loops
from muntin.scalars import Scalars


@functools.cache
def build(code: Code) -> Loops:
    """The loops around the functions of an aggregate; each is compiled when it is first called.

    They are not cached on disk: the folder would grow with every function that users try.
    """
    world: dict[str, Any] = {**vars(operation_kernels), "inf": math.inf, "nan": math.nan}
    exec(code.source, world)  # noqa: S102  made by `tracing`
    identity = (0, *(column[0].item() for column in code.form.zeros(1).columns))
    declared = Scalars(
        identity, world["lift"], world["combine"], world.get("invert"), lower=world.get("lower")
    )
    return loops(declared, cached=False)
