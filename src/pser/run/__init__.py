"""What carries a run out: training, executors, progress."""
