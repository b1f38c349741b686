"""How everything is written to disk: atomic, checksummed."""
