"""Theorem 1: exact values, bounds, measurements."""
