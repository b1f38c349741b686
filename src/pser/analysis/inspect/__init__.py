"""What is in a replay memory, on one page."""
