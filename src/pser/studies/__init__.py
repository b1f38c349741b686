"""Whole experiments as code: what is asked, which runs answer it, and what their records say."""
