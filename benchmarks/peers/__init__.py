"""One module per library; each has a `PEER` (see `benchmarks.peer`)."""
