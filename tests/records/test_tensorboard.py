"""TensorBoard events hold the numbers of the records."""

import pytest

from pser.records.tensorboard import TensorBoard

ROW = {"frames": 10, "loss": 0.5, "return_mean": None, "memory": {"size": 3}}


def test_numbers_are_written_at_their_frames(tmp_path):
    pytest.importorskip("tensorboard")
    board = TensorBoard(tmp_path, enabled=True, frames=0)
    board.add("train", ROW)
    board.close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"train/loss", "train/memory/size"}
    (loss,) = events.Scalars("train/loss")
    assert (loss.step, loss.value) == (10, 0.5)


def test_a_run_that_starts_again_from_nothing_leaves_no_number_twice(tmp_path):
    pytest.importorskip("tensorboard")
    for _ in range(2):
        board = TensorBoard(tmp_path, enabled=True, frames=0)
        board.add("train", ROW)
        board.close()
    assert len(list(tmp_path.iterdir())) == 1


def test_switched_off_it_writes_nothing(tmp_path):
    board = TensorBoard(tmp_path, enabled=False, frames=0)
    board.add("train", ROW)
    board.close()
    assert list(tmp_path.iterdir()) == []
