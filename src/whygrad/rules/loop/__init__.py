"""The training loop, the optimizer and what it holds, the registration of modules."""
