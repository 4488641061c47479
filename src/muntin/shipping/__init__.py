"""How the library of compiled kernels is made: `python -m muntin.shipping`.

`object_kernels.py` runs queries, so that Numba compiles the kernels for the types of their arguments, and
writes the machine code to one object file. `c_source.py` writes the tables and stubs through which Python
calls it, after those of `entry.c`. `library.py` links both to a library, and writes its manifest.
"""
