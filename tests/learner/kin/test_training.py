"""Every kin trains, and goes on from a checkpoint as if nothing had happened."""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pser
from pser.errors import PserError
from pser.learner.events import CheckpointDue
from pser.learner.games import training_game
from pser.learner.kin.introspective import IntrospectiveReplay
from pser.learner.kin.reaper import ReaPERReplay
from pser.learner.kin.reliability import raw_priorities
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


def test_a_game_that_starts_afresh_on_resuming_begins_new_episodes_for_reaper(tmp_path):
    settings = settings_of("reaper", capacity=400)
    with contextlib.closing(training_game(settings)) as game:
        stopped, resumed = trainer_of(settings, game), trainer_of(settings, game)
        for _ in stopped.train(200):
            pass
        stopped.memory.save(tmp_path / "memory.pser")
        state = stopped.get_state()
        game.exact_state, game.set_state = False, lambda state: game.reset(0)
        resumed.set_state(state, pser.ReplayMemory.load(tmp_path / "memory.pser"))
        for _ in resumed.train(202):
            pass
        before, after = resumed.replay.episodes.episode[198:202].reshape(2, 2)
        assert (resumed.memory.predecessors([200, 201], 1) == -1).all()
        assert not set(before) & set(after)


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


def test_rewards_that_are_gone_take_no_room():
    settings = settings_of("backprop", capacity=16)
    with contextlib.closing(training_game(settings)) as game:
        replay = trainer_of(settings, game).replay
        rows, no = np.zeros((2, 4), np.float32), np.zeros(2, bool)
        for _ in range(100):
            replay.add(Experience(rows, np.zeros(2, np.int64), np.ones(2), rows, no, no))
            held, index = replay.walkers.origin, replay.memory.index
            assert set(held) >= set(range(index.oldest_id, index.next_id))
            assert len(held) <= 32


def surprise_of(agent, row, action, reward, next_row):
    """|δ| of one step, from the Q values."""
    target = reward + agent.settings.gamma * agent.q_values(next_row[None]).max()
    return abs(float(target - agent.q_values(row[None])[0, action]))


@pytest.mark.parametrize("pivots", [1, 5, 40])
def test_pivots_are_the_largest_surprises_as_found_last_and_of_equals_the_newest(pivots):
    settings, rng = settings_of("ier", capacity=16, batch_size=4, pivots=pivots), np.random.default_rng(0)
    with contextlib.closing(training_game(settings)) as game:
        replay = trainer_of(settings, game).replay
        known, slow, ages, no = {}, [], set(), np.zeros(2, bool)
        for _ in range(60):
            rows, following = rng.normal(size=(2, 2, 4)).astype(np.float32)
            action, reward = rng.integers(2, size=2), rng.normal(size=2)
            first = replay.memory.index.next_id
            replay.add(Experience(rows, action, reward, following, no, no))
            for env in range(2):
                known[first + env] = surprise_of(
                    replay.agent, rows[env], action[env], reward[env], following[env]
                )
            alive = range(replay.memory.index.oldest_id, replay.memory.index.next_id)
            for _ in range(3):
                slow = [id_ for id_ in slow if id_ in alive]
                slow = slow or sorted(alive, key=lambda id_: (-known[id_], -id_))[:pivots]
                batch = replay.draw(4, 0.5)
                assert batch.ids[0] == slow[0]
                ages.add(alive[-1] - slow.pop(0))
                found = rng.integers(-9, 9, size=len(batch.ids)).astype(np.float32) / 4.0
                replay.learned(batch, found)
                known |= dict(zip(batch.ids.tolist(), np.abs(found).astype(float).tolist(), strict=True))
        assert len(ages) > 8


def test_introspective_replay_learns_from_every_environment_and_looks_back():
    settings = settings_of("ier", num_envs=8, capacity=1000, budget_frames=2000, update_period_steps=4)
    with contextlib.closing(training_game(settings)) as game:
        trainer = trainer_of(settings, game)
        draw, pivots, ages = trainer.replay.draw, [], []

        def watched(batch_size, beta):
            batch = draw(batch_size, beta)
            pivots.append(int(batch.ids[0]))
            ages.append(trainer.memory.index.next_id - 1 - pivots[-1])
            return batch

        trainer.replay.draw = watched
        for _ in trainer.train():
            pass
    shares = np.bincount(np.array(pivots) % 8, minlength=8) / len(pivots)
    assert shares.min() > 0.02
    assert len(set(pivots)) > len(pivots) / 8
    assert np.median(ages) > 80  # ten steps of every environment


def of_short_episodes(kind, settings, agent=None):
    """A replay of a game of six steps, whose frames run out before its capacity does."""
    game = SimpleNamespace(observation=pser.Frames((2, 2), stack=4), num_envs=1)
    replay, no = kind(settings, game, agent), np.zeros(1, bool)
    frames = np.arange(1200, dtype=np.uint32).astype(np.uint8).repeat(4).reshape(-1, 2, 2)
    for episode, t in itertools.islice(itertools.product(range(150), range(6)), 448):
        seen = frames[7 * episode + t :]
        step = (np.zeros(1, np.int64), np.zeros(1), seen[1:5][None], np.array([t == 5]), no)
        replay.add(Experience(seen[:4][None], *step))
    assert len(replay.memory) < settings.replay.capacity
    return replay


def test_no_pivot_is_gone_where_frames_run_out_before_the_capacity_does():
    agent = SimpleNamespace(new_priorities=lambda *_: np.ones(1, np.float32))
    replay = of_short_episodes(IntrospectiveReplay, settings_of("ier", capacity=60, num_envs=1), agent)
    for _ in range(100):
        batch = replay.draw(8, 0.5)
        assert len(batch.ids)
        replay.learned(batch, np.full(len(batch.ids), 0.01, np.float32))


def test_what_is_gone_makes_no_target_less_reliable_where_frames_run_out():
    settings = settings_of("reaper", capacity=60, num_envs=1, priority_eps=0.0)
    replay = of_short_episodes(ReaPERReplay, settings)
    index = replay.memory.index
    ids = np.arange(index.oldest_id, index.oldest_id + 6)
    ids = ids[ids // 6 == ids[0] // 6]
    assert 1 < len(ids) < 6  # of an episode of which the rest is gone
    replay.learned(SimpleNamespace(ids=ids), np.ones(len(ids), np.float32))
    assert index.priority(ids) == pytest.approx(raw_priorities(np.ones(len(ids)), replay.rule))


def test_the_share_of_batches_from_the_library_is_the_one_set():
    settings = settings_of("sequences", library_share=0.2)
    with contextlib.closing(training_game(settings)) as game:
        trainer = trainer_of(settings, game)
        for _ in trainer.train(100):
            pass
        replay = trainer.replay
        assert replay.library.ends
        sample, ordinary = replay.memory.sample, []
        replay.memory.sample = lambda *asked: ordinary.append(asked) or sample(*asked)
        for _ in range(1000):
            replay.draw(8, 0.5)
    assert 750 < len(ordinary) < 850  # 800 expected, four standard deviations either side
