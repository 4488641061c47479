"""Combiners of slices into windows: one for each store that a plan can name."""
