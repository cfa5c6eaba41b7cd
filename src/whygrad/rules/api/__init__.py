"""Calls that do not do what they seem to do."""
