"""What the tabular study says."""
