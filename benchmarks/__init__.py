"""What recording costs, as measured ratios to the bare program: one module a question, `python -m benchmarks` asks."""
