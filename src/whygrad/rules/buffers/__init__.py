"""Grad buffers: accumulated, reset, stale, missing."""
