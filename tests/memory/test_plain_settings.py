"""SEMANTICS: settings are plain Python numbers once inside, whatever they came as; what can be made can be saved."""

from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest

import pser
from pser import _kernel

from .dumps import dump_index

AS_NUMPY = pser.PSER(
    alpha=np.float32(0.5),
    eps=np.float64(1e-3),
    eta=Fraction(7, 10),
    rho=np.float16(0.5),
    window=np.int64(5),
    decay=np.str_("add"),
    decay_on_insert=np.bool_(False),
    stratified=np.bool_(True),
)
AS_PYTHON = pser.PSER(
    alpha=0.5, eps=1e-3, eta=0.7, rho=0.5, window=5, decay="add", decay_on_insert=False, stratified=True
)


def all_plain(values):
    return all(type(value) in (int, float, bool, str, type(None)) for value in values)


def test_numbers_of_numpy_become_pythons_in_every_prioritization():
    assert AS_NUMPY == AS_PYTHON
    assert all_plain(asdict(AS_NUMPY).values())
    per = pser.PER(alpha=np.float32(0.5), eps=np.float32(0.5), variant=np.str_("rank"))
    assert all_plain(asdict(per).values())
    assert all_plain(asdict(pser.Uniform(stratified=np.bool_(False))).values())
    assert all_plain(asdict(pser.AdaptiveWindow(floor=np.float32(0.5), limit=np.uint8(7))).values())
    anneal = pser.Anneal(start=np.float32(0.5), end=np.int8(1), steps=np.int64(10))
    assert all_plain(asdict(anneal).values())
    assert type(anneal(np.int64(5))) is float


@pytest.mark.parametrize(
    "prioritization",
    [
        AS_NUMPY,
        pser.PSER(window=pser.AdaptiveWindow(floor=np.float32(0.5), limit=np.int16(9))),
        pser.PER(alpha=np.float32(0.5)),
        pser.Uniform(stratified=np.bool_(False)),
    ],
    ids=lambda p: type(p).__name__,
)
def test_what_was_made_of_numpys_numbers_can_be_saved(prioritization, tmp_path):
    index = pser.PriorityIndex(np.int64(6), prioritization, num_streams=np.uint8(2), seed=np.int32(3))
    index.append([True, True])
    index.update(*index.sample(np.int64(4), np.float32(0.5)))
    index.save(tmp_path / "index")
    assert dump_index(pser.PriorityIndex.load(tmp_path / "index")) == dump_index(index)


def test_a_memory_made_of_numpys_numbers_can_be_saved(tmp_path):
    memory = pser.ReplayMemory(
        np.int64(6),
        pser.Frames((np.int64(2), 2), stack=np.int8(2), spare=np.float32(0.5)),
        pser.Array((np.int32(1),), np.float32),
        num_envs=np.int64(1),
        n_step=np.int16(2),
        gamma=np.float32(0.9),
        seed=np.uint64(1),
    )
    memory.save(tmp_path / "memory")
    loaded = pser.ReplayMemory.load(tmp_path / "memory")
    assert (loaded.capacity, loaded.n_step, loaded.gamma) == (6, 2, memory.gamma)


def test_every_setting_reaches_the_kernel():
    """No field of the kernel's rules is left as it was when every setting is another than the default."""
    rules = pser.PSER(
        alpha=0.3,
        eps=0.01,
        eta=0.2,
        rho=0.7,
        window=pser.AdaptiveWindow(floor=0.05, limit=9),
        decay="add",
        retain="decayed",
        decay_from="priority",
        decay_on_insert=False,
        stratified=False,
        weights="memory",
    ).rules()
    untouched = _kernel.Rules()
    names = [name for name in dir(_kernel.Rules) if not name.startswith("_")]
    assert len(names) == 13
    assert [name for name in names if getattr(rules, name) == getattr(untouched, name)] == ["kind"]
    assert (rules.window, rules.decay_floor) == (9, 0.05)
    assert pser.PER(variant="rank").rules().kind == _kernel.Kind.rank
    assert pser.Uniform().rules().kind == _kernel.Kind.uniform
