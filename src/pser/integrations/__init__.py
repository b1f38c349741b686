"""Adapters that put the memory's rules inside other training libraries; import the one you need by its own name.

`pser.integrations.sb3`, `pser.integrations.torchrl`, `pser.integrations.tianshou` and `pser.integrations.rllib` each
import their library.
"""
