"""Modules: what `torch.nn` names, one family a file."""
