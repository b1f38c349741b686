"""Engines that carry runs out on many machines."""
