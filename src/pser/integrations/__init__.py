"""Adapters that put the memory's rules inside other training libraries; import the one you need by its own name.

`pser.integrations.sb3`, `pser.integrations.torchrl` and `pser.integrations.tianshou` each import their library.
"""
