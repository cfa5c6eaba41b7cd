"""Shapes and losses: broadcasting, reductions, dimensions, losses applied to the wrong thing."""
