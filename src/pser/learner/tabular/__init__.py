"""Tabular Q-learning on the Blind Cliffwalk."""
