"""Kin of PSER: other rules that replay what led to a reward or a surprise, each a strategy of its own."""
