"""Every kin trains, and goes on from a checkpoint as if nothing had happened."""

import contextlib

import numpy as np
import pytest
import torch

import pser
from pser.errors import PserError
from pser.learner.events import CheckpointDue
from pser.learner.games import training_game
from pser.learner.loop import Trainer
from pser.learner.presets import classic
from pser.learner.replay import Experience
from pser.learner.strategies import STRATEGIES

torch.set_num_threads(1)
KIN = sorted(set(STRATEGIES) - {"pser", "per", "uniform"})
SMALL = {
    "budget_frames": 400,
    "checkpoint_period_frames": 200,
    "num_envs": 2,
    "n_step": 1,
    "warmup_steps": 50,
    "capacity": 150,
    "batch_size": 8,
    "hidden": (8,),
    "epsilon_decay_steps": 100,
}


def settings_of(replay, **changes):
    return classic("gym:CartPole-v1").override({**SMALL, "replay": replay, **changes})


def trainer_of(settings, game):
    return Trainer(settings, game, torch.device("cpu"))


@pytest.mark.parametrize("replay", KIN)
def test_a_run_continued_is_the_run_never_stopped(replay, tmp_path):
    settings = settings_of(replay)
    with contextlib.closing(training_game(settings)) as game:
        whole, saved = trainer_of(settings, game), None
        for event in whole.train():
            if isinstance(event, CheckpointDue) and saved is None:
                saved = whole.get_state()
                whole.memory.save(tmp_path / "memory.pser")
        assert np.isfinite(whole.agent.get_weights()).all()
        assert whole.counters.updates > 100
    with contextlib.closing(training_game(settings)) as game:
        continued = trainer_of(settings, game)
        continued.set_state(saved, pser.ReplayMemory.load(tmp_path / "memory.pser"))
        for _ in continued.train():
            pass
    assert (continued.agent.get_weights() == whole.agent.get_weights()).all()


@pytest.mark.parametrize("replay", KIN)
def test_longer_returns_are_refused(replay):
    settings = settings_of(replay, n_step=3)
    with contextlib.closing(training_game(settings)) as game, pytest.raises(PserError, match="n_step 1"):
        trainer_of(settings, game)


def test_an_episode_is_given_out_from_its_end_with_its_targets():
    settings = settings_of("ebu")
    with contextlib.closing(training_game(settings)) as game:
        trainer = trainer_of(settings, game)
        replay = trainer.replay
        for step in range(5):
            ended = np.array([step == 4, False])
            rows = np.full((2, 4), step, np.float32)
            replay.add(
                Experience(rows, np.zeros(2, np.int64), np.ones(2), rows + 1, ended, np.zeros(2, bool))
            )
        batch = replay.draw(3, 0.5)
        assert batch.ids.tolist() == [4, 6, 8]  # the first environment's last steps, in order of time
        assert batch.reward[-1] == 1.0
        assert not batch.discount.any()
        assert replay.draw(3, 0.5).ids.tolist() == [0, 2]


def test_a_reward_starts_with_the_high_priority():
    settings = settings_of("backprop", high_priority=2.0, low_priority=0.5)
    with contextlib.closing(training_game(settings)) as game:
        replay = trainer_of(settings, game).replay
        rows, no = np.zeros((2, 4), np.float32), np.zeros(2, bool)
        replay.add(Experience(rows, np.zeros(2, np.int64), np.array([0.0, 1.0]), rows, no, no))
        assert replay.memory.priorities([0, 1]).tolist() == [0.5, 2.0]


def test_the_pivot_is_the_largest_surprise_and_of_the_unknown_the_newest():
    settings, rng = settings_of("ier", capacity=16, batch_size=4), np.random.default_rng(0)
    with contextlib.closing(training_game(settings)) as game:
        replay = trainer_of(settings, game).replay
        known = {}
        rows, no = np.zeros((2, 4), np.float32), np.zeros(2, bool)
        for _ in range(30):
            replay.add(Experience(rows, np.zeros(2, np.int64), np.zeros(2), rows, no, no))
            alive = range(replay.memory.index.oldest_id, replay.memory.index.next_id)
            for _ in range(3):
                slow = max(alive, key=lambda id_: (known.get(id_, np.inf), id_))
                batch = replay.draw(4, 0.5)
                assert batch.ids[0] == slow
                found = rng.normal(size=len(batch.ids)).astype(np.float32)
                replay.learned(batch, found)
                known |= dict(zip(batch.ids.tolist(), np.abs(found).astype(float).tolist(), strict=True))
