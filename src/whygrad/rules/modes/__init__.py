"""Modes: training and evaluation, grad mode, statistics, dropout."""
