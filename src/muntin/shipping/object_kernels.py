"""The machine code of all kernels that queries call, as one object file.

Runs in a process of its own: Numba reads the CPU to compile for from the environment when it is imported.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core import types as numba_types

from muntin.dispatcher_kernels import ENTRIES
from muntin.shipped_library import BASELINES, facts
from muntin.shipping.c_source import ARRAY_WORDS, DTYPES, Type, flattened
from muntin.warming import steps

types: Any = numba_types  # the module is typed incompletely


def describe(kind: Any) -> Type | None:
    """A type of Numba as plain values; None if the library has no way to pass it."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Array):
        supported = (
            kind.ndim in (1, 2) and kind.aligned and isinstance(kind.dtype, types.Number | types.Boolean)
        )
        return ["array", str(kind.dtype), kind.ndim, kind.layout, not kind.mutable] if supported else None
    if str(kind) in DTYPES:
        return ["number", str(kind)]
    if isinstance(kind, types.NoneType):
        return ["none"]
    if isinstance(kind, types.BaseTuple):
        items = [describe(item) for item in kind.types]
        return None if None in items else ["tuple", items]
    return None


def variants() -> Iterator[tuple[dict[str, Any], Any]]:
    """What has been compiled in this process: a description of each variant, and Numba's result."""
    for dispatcher in ENTRIES:
        function = dispatcher.py_func
        parameters = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
        rest = inspect.Parameter.VAR_POSITIONAL
        for arguments, result in dispatcher.overloads.items():
            described = [describe(kind) for kind in arguments]
            returned = describe(result.signature.return_type)
            if returned is None or None in described or any(isinstance(k, types.Literal) for k in arguments):
                continue
            yield (
                {
                    "kernel": f"{function.__module__}.{function.__qualname__}",
                    "fixed": parameters.index(rest) if rest in parameters else -1,
                    "signature": str(arguments),
                    "arguments": described,
                    "returns": returned,
                },
                result,
            )


def module_of(result: Any, symbol: str) -> Any:
    """The optimised code of one variant, of which only the function itself can be seen from outside."""
    module = llvm.parse_bitcode(result.library._final_module.as_bitcode())
    entry = module.get_function(result.fndesc.llvm_func_name)
    entry.name = symbol
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != symbol:
            value.linkage = "internal"
    return module


def unwritten(module: Any, symbol: str, arguments: list[Type]) -> list[bool]:
    """For each argument and item of a tuple: whether it is an array that the code does not write to."""
    parameters = list(module.get_function(symbol).arguments)[2:]
    reads_only, at = [], 0
    for kind in flattened(arguments):
        data = parameters[at + 4] if kind[0] == "array" else None
        reads_only.append(data is not None and bool({b"readonly", b"readnone"} & set(data.attributes)))
        at += 0 if kind[0] == "tuple" else ARRAY_WORDS[kind[2]] if kind[0] == "array" else 1
    assert at == len(parameters), "a kernel takes other arguments than its types say"
    return reads_only


def write(object_file: Path, description: Path) -> None:
    """Run the queries, and write the object file and what is in it."""
    for _, step in steps():
        step()
    llvm.initialize_native_asmprinter()
    cpu, _ = BASELINES[facts()["machine"]]
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=cpu, opt=3, reloc="pic", codemodel="default")
    whole = llvm.parse_assembly("")
    whole.triple = machine.triple
    listed: list[dict[str, Any]] = []
    for described, result in variants():
        symbol = f"muntin_kernel_{len(listed)}"
        module = module_of(result, symbol)
        listed.append(
            {**described, "symbol": symbol, "unwritten": unwritten(module, symbol, described["arguments"])}
        )
        whole.link_in(module)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_merge_functions_pass()
    passes.run(whole, builder)
    object_file.write_bytes(machine.emit_object(whole))
    description.write_text(json.dumps(listed))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
