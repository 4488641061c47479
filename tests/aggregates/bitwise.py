"""Values to compare bit by bit."""

import math
import struct
from typing import Any


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return type(value).__name__, value
