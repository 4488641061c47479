"""User-defined aggregates compiled by Numba, with the results that Python gives.

The interpreter defines the meaning of a user's function. Compiled, the function gives the same result
or raises, and a batch that raised is computed again in the interpreter: integers beyond 64 bits, a
division by zero, an exception of the user's own. A result never depends on whether a function is compiled.

* `reading`: a copy of a function with the values that it reads, and detection of their changes.
* `symbols`: symbolic values. A function that is called with them records its operations.
* `tracing`: one function as a tree of operations and branches; all functions of an aggregate as source text.
* `operation_kernels`: the operations that compiled code needs in a checked form.
* `fold_kernels`: these functions as a declaration on scalars, from which `loop_kernels` makes the loops.
* `program`: when an aggregate is compiled, and the reason if it is not.
"""
