"""`python -m benchmarks start`: what the first query of a fresh process costs, with empty caches and again.

Each row is a process of its own. "first" has an empty cache of compiled code, "warm" what the first one left
there. With the library of compiled kernels that ships, both compile nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

__all__ = ["CASES", "StartMeasurement", "measure_start", "run_start"]

_BEFORE = """
import json, sys, time
begun = time.process_time()
import muntin as mt
imported = time.process_time()
"""
_DATA = """
import numpy as np
from muntin import aggregates as a, windows as w
n = 10_000
numbers = np.arange(n)
stream = {"t": numbers + numbers % 5, "k": numbers % 50}
stream |= {"i": numbers % 97, "f": numbers * 0.5, "b": numbers % 9 == 0}
def run(named, values):
    query = mt.windows(**named).aggregate(**values).by("k").on("t")
    operator = query.operator(watermark_lag=10)
    operator.process(stream)
    operator.finish()
"""
_AFTER = """
import resource
announcer = sys.modules.get("muntin.compiling_kernels")
print(json.dumps({
    "cpu": time.process_time(), "import_ms": 1000 * (imported - begun),
    "compiled": announcer.ANNOUNCER.compiled if announcer else 0,
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "numba": "numba" in sys.modules,
}))
"""
_NUMERIC = "dict(n=a.count(), s=a.sum('i'), m=a.mean('f'), low=a.min('i'), high=a.max('f'))"

CASES = {
    "an empty process": "",
    "README example": f"""{_DATA}
run(dict(minute=w.tumbling(60), smooth=w.sliding(600, 50), visit=w.session(30), hundred=w.count(100)),
    dict(total=a.sum("f"), p95=a.quantile("f", 0.95), top=a.arg_max("i", by="f")))
""",
    "all windows": f"""{_DATA}
for named in (
    dict(x=w.tumbling(60)), dict(x=w.sliding(60, 10)), dict(x=w.cumulate(60, 10)), dict(x=w.session(30)),
    dict(x=w.count(100)), dict(x=w.slide_by_tuple(60, 5)), dict(x=w.last(10, 50)), dict(x=w.threshold("b")),
    dict(x=w.delta("f", 50.0)), dict(x=w.boundary("f", 50.0)), dict(x=w.until(a.sum("i"), 500)),
    dict(x=w.punctuation("b")), dict(x=w.fixed_band(5, 100)), dict(x=w.landmark(0, 100)),
    dict(x=w.session(30, max_length=90)), dict(x=w.tumbling(60, measure="i")),
):
    run(named, {_NUMERIC})
""",
    "numeric aggregates": f"""{_DATA}
for values in (
    {_NUMERIC}, dict(v=a.variance("f"), d=a.stddev("i"), g=a.geometric_mean("f"), c=a.correlation("f", "i")),
    dict(m=a.median("f"), q=a.quantile("i", 0.9)),
    dict(d=a.count_distinct("i"), o=a.mode("i"), t=a.top_k("i", 3)),
    dict(x=a.arg_max("i", by="f"), y=a.min_count("i"), f=a.first("f"), l=a.last("i")),
):
    run(dict(ten=w.tumbling(60), slid=w.sliding(60, 10)), values)
""",
}
"""The program of each row."""


@dataclass(frozen=True, slots=True)
class StartMeasurement:
    """One fresh process."""

    case: str
    run: str
    """"first" with an empty cache, "warm" with what the first one left."""
    cpu: float
    """Seconds of CPU time, from the start of the interpreter to the end of the program."""
    import_ms: float
    """Milliseconds of CPU time of `import muntin`."""
    compiled: int
    megabytes: float
    """The largest resident memory."""
    numba: bool
    """Whether Numba was imported."""


def measure_start(case: str) -> list[StartMeasurement]:
    """Run a case twice in fresh processes, the first time with an empty cache."""
    found = []
    with tempfile.TemporaryDirectory() as cache:
        for run in ("first", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", _BEFORE + CASES[case] + _AFTER],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"{case} failed:\n{done.stderr}")
            found.append(StartMeasurement(case, run, **json.loads(done.stdout.splitlines()[-1])))
    return found


def run_start(console: Console, as_json: bool = False) -> None:
    """Measure all cases and print them."""
    found = [measured for case in CASES for measured in measure_start(case)]
    if as_json:
        console.print_json(json.dumps([asdict(measured) for measured in found]))
        return
    table = Table(title="A fresh process")
    table.add_column("program")
    table.add_column("run")
    for heading in ("CPU s", "import muntin ms", "functions compiled", "resident MB", "Numba"):
        table.add_column(heading, justify="right")
    for m in found:
        cells = (f"{m.cpu:.2f}", f"{m.import_ms:.0f}", str(m.compiled), f"{m.megabytes:.0f}")
        table.add_row(m.case, m.run, *cells, "yes" if m.numba else "no")
    console.print(table)
