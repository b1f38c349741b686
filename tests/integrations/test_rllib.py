"""RLlib's episode buffer on a `ReplayMemory`: pieces of episodes in, exact priorities, state, two real algorithms."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pser
from pser.errors import PserError

pytest.importorskip("ray", reason="Ray is not installed: pip install 'pser[ray]'")
for module in ("tensorboardX", "pyarrow", "tree", "lz4", "ormsgpack", "scipy"):
    pytest.importorskip(module, reason=f"RLlib needs {module}: pip install 'pser[rllib]'")


@pytest.fixture(scope="module")
def rllib():
    import warnings

    with warnings.catch_warnings():  # RLlib's own
        warnings.simplefilter("ignore")
        import pser.integrations.rllib as module
    return module


def play(rllib, lengths, *, terminated=True, number=0):
    """One episode in pieces of these lengths; every number in it tells the episode and the step."""
    total = sum(lengths)
    value = [np.array([number, t], np.float32) for t in range(total + 1)]
    episode = rllib.SingleAgentEpisode(
        id_=f"episode {number}", observations=[value[0]], len_lookback_buffer=0
    )
    pieces, t = [], 0
    for length in lengths:
        for _ in range(length):
            last = t == total - 1
            episode.add_env_step(
                value[t + 1],
                np.int64(t % 3),
                100.0 * number + t,
                terminated=last and terminated is True,
                truncated=last and terminated is False,
            )
            t += 1
        pieces.append(episode)
        if not episode.is_done:
            episode = episode.cut()
    return pieces


def buffer_of(rllib, **settings):
    given = {
        "prioritization": pser.PSER(window=3),
        "streams": 4,
        "seed": 7,
        "capacity": 40,
        "beta": 0.5,
        "alpha": 0.6,
    }
    return rllib.PSEREpisodeReplayBuffer(**{**given, **settings})


def td_errors(episodes):
    """Errors that depend on what was sampled, so that a wrong row would be seen."""
    return np.array([1.0 + float(e.get_observations(0) @ [1.0, 0.5]) for e in episodes], np.float32)


@pytest.mark.parametrize("n_step", [1, 3])
def test_pieces_of_episodes_give_the_priorities_of_a_bare_index(rllib, n_step):
    buffer = buffer_of(rllib, n_step=n_step)
    bare = pser.PriorityIndex(40, pser.PSER(window=3), 4, seed=7)
    first, second = play(rllib, [2, 5], number=1), play(rllib, [4, 20, 9], number=2, terminated=False)
    pieces = [second[0], first[0], second[1], first[1], second[2]]
    started, steps, pending = set(), [], {1: [], 2: []}
    for piece in pieces:
        number = int(piece.get_observations(0)[0])
        pending[number] += [(number, piece.t_started + t) for t in range(len(piece))]
        whole = len(pending[number]) if piece.is_done else len(pending[number]) - n_step + 1
        ready, pending[number] = pending[number][:whole], pending[number][whole:]
        steps += ready
        for _ in ready:
            bare.append([number not in started], stream=[{2: 0, 1: 1}[number]])
            started.add(number)
        buffer.add(piece)
        sampled = buffer.sample(16, n_step=n_step, beta=0.5, gamma=0.99)
        ids, weights = bare.sample(16, 0.5)
        got = [tuple(e.get_observations(0).astype(int).tolist()) for e in sampled]
        assert got == [steps[i] for i in ids.tolist()]
        np.testing.assert_allclose(
            [e.get_extra_model_outputs("weights", 0) for e in sampled], weights, rtol=1e-6, atol=0
        )
        errors = td_errors(sampled)
        buffer.update_priorities(errors)
        bare.update(ids, errors)
    assert len(buffer) == len(bare) == 40
    retained = np.arange(bare.oldest_id, bare.next_id)
    np.testing.assert_array_equal(buffer.memory.priorities(retained), bare.priority(retained))


@pytest.mark.parametrize("terminated", [True, False])
def test_a_sample_is_what_was_played_to_the_last_step(rllib, terminated):
    buffer = buffer_of(rllib, n_step=3, gamma=0.5)
    buffer.add(play(rllib, [3, 4], number=1, terminated=terminated))
    seen = set()
    for episode in buffer.sample(200, n_step=3, beta=0.4, gamma=0.5):
        number, t = episode.get_observations(0)
        steps = min(3, 7 - int(t))
        seen.add(int(t))
        ends = t + 3 >= 7
        np.testing.assert_array_equal(episode.get_observations(1), [number, t + steps])
        assert episode.get_actions(0) == t % 3
        assert episode.get_rewards(0) == sum(0.5**k * (100.0 + t + k) for k in range(steps))
        assert episode.is_terminated == (ends and terminated)
        if not episode.is_terminated:
            assert episode.get_extra_model_outputs("n_step", 0) == steps
    assert seen == set(range(7))


def test_a_saved_buffer_goes_on_bit_for_bit(rllib):
    buffer, again = buffer_of(rllib), buffer_of(rllib, seed=1)
    pieces = play(rllib, [5, 6], number=3)
    buffer.add(pieces[0])
    buffer.sample(8, beta=0.5)
    again.set_state(buffer.get_state())
    for one in (buffer, again):
        one.update_priorities(np.arange(8.0))
        one.add(pieces[1])
    for _ in range(3):
        samples = [one.sample(8, beta=0.5) for one in (buffer, again)]
        rows = [[e.get_observations(0).tolist() for e in episodes] for episodes in samples]
        assert rows[0] == rows[1]
        for one, episodes in zip((buffer, again), samples, strict=True):
            one.update_priorities(td_errors(episodes))
    assert buffer.memory.stats() == again.memory.stats()
    assert buffer.get_added_timesteps() == again.get_added_timesteps() == 11
    assert buffer.get_sampled_timesteps() == again.get_sampled_timesteps() == 32


def test_an_empty_buffer_can_be_saved(rllib):
    again = buffer_of(rllib)
    again.set_state(buffer_of(rllib).get_state())
    assert len(again) == 0


def test_episodes_that_never_end_make_room_for_new_ones(rllib):
    buffer = buffer_of(rllib, streams=2)
    for number in (1, 2, 3):
        buffer.add(play(rllib, [2, 1], number=number)[0])
    assert buffer.get_num_episodes() == 2
    buffer.add(play(rllib, [2, 1], number=1)[1])  # late: its stream was given away
    index = buffer.memory.index
    assert index.predecessors(np.arange(7), 1).ravel().tolist() == [-1, 0, -1, 2, -1, 4, -1]


def test_a_piece_that_does_not_follow_begins_a_new_sequence(rllib):
    buffer = buffer_of(rllib)
    pieces = play(rllib, [2, 2, 2], number=1)
    buffer.add([pieces[0], pieces[2]])
    assert buffer.memory.index.predecessors(np.arange(4), 1).ravel().tolist() == [-1, 0, -1, 2]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"n_step": 3, "beta": 0.4}, "n_step must be the algorithm's, which is 3, got 1"),
        ({"n_step": (1, 4), "beta": 0.4}, "n_step must be the algorithm's"),
        ({"gamma": 0.9, "beta": 0.4}, "gamma must be the algorithm's, which is 0.9, got 0.99"),
        ({}, "RLlib gave no beta"),
    ],
)
def test_a_sample_that_contradicts_the_buffer_is_refused(rllib, asked, told):
    buffer = buffer_of(rllib)
    buffer.add(play(rllib, [3]))
    with pytest.raises(PserError, match=told):
        buffer.sample(2, **asked)


def test_what_is_missing_is_said(rllib):
    with pytest.raises(PserError, match=r"prioritization must be .* in replay_buffer_config"):
        rllib.PSEREpisodeReplayBuffer(10)
    buffer = buffer_of(rllib)
    with pytest.raises(PserError, match="empty buffer"):
        buffer.sample(2, beta=0.5)
    with pytest.raises(PserError, match="no sample to update"):
        buffer.update_priorities([1.0])
    buffer.add(play(rllib, [3]))
    buffer.sample(2, beta=0.5)
    with pytest.raises(PserError, match="one TD error for each of 2 transitions, got 3"):
        buffer.update_priorities([1.0, 2.0, 3.0])


SAC = """
import pickle
import sys
import ray
import pser
from pser.integrations.rllib import BUFFER, SACConfig

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
buffer = {"type": BUFFER, "capacity": 500, "prioritization": pser.PSER(), "beta": 0.5, "seed": 0}
config = (
    SACConfig().environment("Pendulum-v1").env_runners(num_env_runners=0)
    .training(replay_buffer_config=buffer, num_steps_sampled_before_learning_starts=20, train_batch_size_per_learner=8)
    .reporting(min_sample_timesteps_per_iteration=40)
)
algorithm = config.build_algo()
algorithm.train()
memory = algorithm.local_replay_buffer.memory
stats = memory.stats()
assert stats["size"] >= 40 and stats["updates_applied"] >= 8 * 10, stats
assert memory.prioritization == pser.PSER() and stats["mass_from_td_error"] > 0.0, stats
saved = pickle.dumps(algorithm.local_replay_buffer.get_state())
path = algorithm.save_to_path(sys.argv[1])
algorithm.stop()
again = config.copy().build_algo()
again.restore_from_path(path)
again.local_replay_buffer.set_state(pickle.loads(saved))
assert again.local_replay_buffer.memory.stats() == stats
again.train()
assert again.local_replay_buffer.memory.stats()["updates_applied"] > stats["updates_applied"]
ray.shutdown()
"""


def test_sac_learns_from_the_buffer_and_goes_on_with_a_saved_one(rllib, tmp_path):
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SAC, str(tmp_path / "saved")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
