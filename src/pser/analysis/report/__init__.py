"""Training runs compared on one page."""
