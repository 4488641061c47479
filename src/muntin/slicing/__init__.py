"""Cutting the stream into slices, and windows from slices."""
