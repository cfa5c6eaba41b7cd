"""Modules that the programs import."""
