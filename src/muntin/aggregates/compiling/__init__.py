"""User-defined aggregates compiled by Numba, with the results that Python would give.

The interpreter defines what a user's function means. Compiled, it gives the same or raises, and
what raised is done again in the interpreter: integers beyond 64 bits, a division by zero, an
exception of the user's own. So a result never depends on whether a function is compiled.

* `reading`: which values outside of itself a function reads; they are frozen when it is compiled.
* `rewriting_kernels`: replaces the operators and calls in a function by the checked ones of
  `arithmetic_kernels` and `calls_kernels`, and refuses what it does not know; `rounding_kernels`
  refuses integers that would become floats.
* `signature_kernels`: the type that all partial aggregates of an aggregate have.
* `fold_kernels`: the loops over tuples and slices into which lift and combine are inlined.
* `program`: decides when to compile, and says why not.
"""
