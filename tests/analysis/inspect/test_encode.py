"""Numbers in few bytes, read back as the page reads them."""

import base64
import math
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pser.analysis.inspect.encode import LEVELS, Block, log_ends, log_levels


def from_log_levels(levels, low, high):
    """The numbers a page reads out of levels."""
    return np.where(levels == 0, 0.0, np.exp(low + (levels - 1.0) / (LEVELS - 1) * (high - low)))


@given(st.lists(st.floats(1e-12, 1e12) | st.just(0.0), min_size=1, max_size=50))
def test_levels_keep_every_number_to_the_width_of_a_level(values):
    values = np.array(values)
    some = values[values > 0]
    low, high = log_ends(values)
    read = from_log_levels(log_levels(values, low, high), low, high)
    width = (high - low) / 65_534
    assert (read[values == 0] == 0).all()
    np.testing.assert_allclose(read[values > 0], some, rtol=width / 2 * 1.01 + 1e-9)


def test_priorities_of_six_decades_keep_four_digits():
    values = np.geomspace(1e-4, 1e2, 1000)
    read = from_log_levels(log_levels(values, math.log(1e-4), math.log(1e2)), math.log(1e-4), math.log(1e2))
    np.testing.assert_allclose(read, values, rtol=1.1e-4)


def test_a_block_holds_its_columns_plane_by_plane_where_the_layout_says():
    block = Block()
    block.add("flags", np.array([True, False, True]))
    block.add("counts", np.array([1, 256, 65_535], np.uint16))
    levels = block.add_logs("priority", np.array([1.0, 0.0, 2.0]))
    block.add_logs("own", np.array([1.0, 0.0, 1.0]), also=np.array([2.0]), like=levels)
    data = zlib.decompress(base64.b64decode(block.text()))
    assert block.layout["flags"] == {"type": "u1", "at": 0, "bytes": 1}
    assert data[:3] == b"\x01\x00\x01"
    assert block.layout["counts"] == {"type": "u2", "at": 3, "bytes": 2}
    assert data[3:9] == bytes([1, 0, 255, 0, 1, 255])
    assert block.layout["priority"]["at"] == 9
    assert levels.tolist() == [1, 0, 65_535]
    own = np.frombuffer(data[15:21], np.uint8).reshape(2, 3).T.copy().view(np.uint16)[:, 0]
    assert (own ^ levels).tolist() == [1, 0, 1]
