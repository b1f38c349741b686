"""Numbers that sum up many runs, and how sure they are."""
