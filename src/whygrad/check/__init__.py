"""Tells which published answers and outputs are not what a run shows."""
