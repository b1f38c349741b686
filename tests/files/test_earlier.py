"""Files of earlier formats still load (tests/data/earlier, made by the versions that introduced them)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pser
from memory.dumps import dump_index
from pser.errors import DamagedFileError
from pser.files.container import is_container, read_container

FOLDER = Path(__file__).parents[1] / "data" / "earlier"
sys.path.insert(0, str(FOLDER))
from make import ENDS, STATE, fill, fill_index, fill_index_of_streams  # noqa: E402


def test_a_memory_of_the_first_version_goes_on():
    driver = fill()
    driver.memory = pser.ReplayMemory.load(FOLDER / "memory.pser")
    driver.compare_everything()
    rng = np.random.default_rng(1)
    for _ in range(60):
        driver.step([str(rng.choice(ENDS)) for _ in range(3)])
    driver.compare_everything()


def test_an_index_of_the_first_version_is_the_same():
    index = pser.PriorityIndex.load(FOLDER / "index.pser")
    index.check_invariants()
    assert dump_index(index)[:-1] == dump_index(fill_index())[:-1]


def test_an_index_in_the_order_of_its_slots_goes_on_as_one_in_tiles():
    made = fill_index_of_streams()
    loaded = pser.PriorityIndex.load(FOLDER / "index-streams.pser")
    loaded.check_invariants()
    assert dump_index(loaded) == dump_index(made)  # also as it is saved now
    rng = np.random.default_rng(3)
    for _ in range(60):
        first, td_error, wanted, news = (
            rng.random(3) < 0.1,
            rng.normal(size=3),
            rng.random(8),
            rng.normal(size=8),
        )
        for index in (made, loaded):
            index.append(first, td_error=td_error)
            index.update((index.oldest_id + wanted * len(index)).astype(np.int64), news)
    loaded.check_invariants()
    assert dump_index(loaded) == dump_index(made)


def test_a_state_of_the_first_version_is_read():
    content = read_container(FOLDER / "state.pser")
    assert is_container(FOLDER / "state.pser")
    assert content["frames"] == 7
    assert content["nested"]["a"].tolist() == STATE["nested"]["a"].tolist()
    assert content["nested"]["b"][0].tolist() == [1.5, -2.0]
    assert content["nested"]["b"][1:] == [None, "x"]


@pytest.mark.parametrize("position", [0, 9, 40, 150, -1])
def test_a_damaged_state_of_the_first_version_is_refused(position, tmp_path):
    data = bytearray((FOLDER / "state.pser").read_bytes())
    data[position] ^= 1
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(DamagedFileError):
        read_container(tmp_path / "x")
