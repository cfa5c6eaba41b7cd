"""The graph: where it was cut, freed, kept too long, or reaches nothing."""
