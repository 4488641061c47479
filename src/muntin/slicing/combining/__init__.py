"""Slices into windows: the stores at work in the operator, all behind `Combiner`."""
