"""`torch._compile`: nothing is compiled here; tools look at the file of this module."""
