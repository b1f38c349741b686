"""RLlib's episode buffer on a `ReplayMemory`: pieces of episodes in, exact priorities, state, two real algorithms."""

import copy
import os
import pickle
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


def by_episodes(sampled):
    """(observations, weights) as a look into each episode finds them."""
    seen = np.array([e.get_observations(0) for e in sampled])
    return seen, np.array([e.get_extra_model_outputs("weights", 0) for e in sampled])


def by_columns(sampled):
    """(observations, weights) as RLlib's learner gets them from `ReadyColumns`."""
    columns = sampled.drawn.columns()
    return columns["obs"], columns["weights"]


def errors_of(observations):
    """Errors that depend on what was sampled, so that a wrong row would be seen."""
    return (1.0 + observations @ np.array([1.0, 0.5])).astype(np.float32)


@pytest.mark.parametrize("read", [by_episodes, by_columns])
@pytest.mark.parametrize("n_step", [1, 3])
def test_pieces_of_episodes_give_the_priorities_of_a_bare_index(rllib, n_step, read):
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
        got, got_weights = read(sampled)
        assert [tuple(row) for row in got.astype(int).tolist()] == [steps[i] for i in ids.tolist()]
        np.testing.assert_allclose(got_weights, weights, rtol=1e-6, atol=0)
        errors = errors_of(got)
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


@pytest.mark.parametrize("read", [by_episodes, by_columns])
def test_a_saved_buffer_goes_on_bit_for_bit(rllib, read):
    buffer, again = buffer_of(rllib), buffer_of(rllib, seed=1)
    pieces = play(rllib, [5, 6], number=3)
    buffer.add(pieces[0])
    buffer.sample(8, beta=0.5)
    again.set_state(buffer.get_state())
    for one in (buffer, again):
        one.update_priorities(np.arange(8.0))
        one.add(pieces[1])
    for _ in range(3):
        samples = [read(one.sample(8, beta=0.5)) for one in (buffer, again)]
        for values, same in zip(*samples, strict=True):
            np.testing.assert_array_equal(values, same)
        for one, (rows, _) in zip((buffer, again), samples, strict=True):
            one.update_priorities(errors_of(rows))
    assert buffer.memory.stats() == again.memory.stats()
    assert buffer.get_added_timesteps() == again.get_added_timesteps() == 11
    assert buffer.get_sampled_timesteps() == again.get_sampled_timesteps() == 32


@pytest.fixture(scope="module")
def learner_of(rllib):
    """RLlib's learner of DQN for two numbers seen and three actions, with these connectors before its own."""
    import gymnasium
    from ray.rllib.algorithms.dqn import DQNConfig

    def build(connector, n_step=1, **training):
        config = DQNConfig().framework("torch").training(n_step=n_step, gamma=0.5, lr=0.01, **training)
        config = config.learners(learner_connector=connector).debugging(seed=3)
        spaces = gymnasium.spaces.Box(-1e4, 1e4, (2,), np.float32), gymnasium.spaces.Discrete(3)
        return config.build_learner(spaces={"default_policy": spaces, "__env__": spaces})

    return build


def two_buffers(rllib, n_step=1):
    """The same episodes and the same draws, twice."""
    buffers = [buffer_of(rllib, n_step=n_step, gamma=0.5) for _ in range(2)]
    for buffer in buffers:
        buffer.add([*play(rllib, [3, 4], number=1), *play(rllib, [9], number=2, terminated=False)])
    return buffers


def train_batch(learner, sampled):
    pipeline = learner._learner_connector
    found = pipeline(rl_module=learner.module, batch={}, episodes=sampled, shared_data={})
    return dict(found["default_policy"])


@pytest.mark.parametrize("n_step", [1, 3])
def test_ready_columns_are_the_train_batch_that_episodes_give(rllib, learner_of, n_step):
    ready, detour = learner_of(rllib.ReadyColumns, n_step), learner_of(None, n_step)
    first, second = (b.sample(16, n_step=n_step, beta=0.5, gamma=0.5) for b in two_buffers(rllib, n_step))
    got, expected = train_batch(ready, first), train_batch(detour, second)
    assert got.keys() == expected.keys() >= {"obs", "new_obs", "actions", "rewards", "weights", "n_step"}
    for name, values in expected.items():
        assert got[name].dtype == values.dtype, name
        np.testing.assert_array_equal(got[name].numpy(), values.numpy(), err_msg=name)
    assert not first.drawn.looked_into
    assert second.drawn.looked_into


@pytest.mark.parametrize("num_atoms", [1, 10])
def test_a_learner_with_ready_columns_learns_the_same(rllib, learner_of, num_atoms):
    learners = [learner_of(each, num_atoms=num_atoms) for each in (rllib.ReadyColumns, None)]
    learners[1].set_state(learners[0].get_state())
    buffers = two_buffers(rllib)
    for _ in range(4):
        errors = []
        for learner, buffer in zip(learners, buffers, strict=True):
            found = learner.update(episodes=buffer.sample(16, beta=0.5), timesteps={})
            errors.append(np.concatenate(found["default_policy"]["td_error"].peek()))
            buffer.update_priorities(errors[-1])
        np.testing.assert_array_equal(*errors)
    first, second = (b.memory.priorities(np.arange(16)) for b in buffers)
    np.testing.assert_array_equal(first, second)
    assert first.max() > 1.0


def test_columns_give_way_to_a_connector_that_changed_the_episodes(rllib, learner_of):
    from ray.rllib.connectors.connector_v2 import ConnectorV2

    class Halved(ConnectorV2):
        def __call__(self, *, batch, episodes, **_):
            for episode in episodes:
                episode.set_rewards(new_data=0.5 * episode.get_rewards(0), at_indices=0)
            return batch

    learner = learner_of(lambda *spaces: [Halved(*spaces), rllib.ReadyColumns(*spaces)])
    first, second = (b.sample(16, beta=0.5) for b in two_buffers(rllib))
    rewards = train_batch(learner, first)["rewards"].numpy()
    np.testing.assert_array_equal(rewards, 0.5 * second.drawn.rewards)
    assert rewards.max() > 1.0


def test_a_row_that_travels_is_an_episode_like_any_other(rllib):
    sampled = two_buffers(rllib)[0].sample(16, beta=0.5)
    for there in (pickle.loads(pickle.dumps(sampled)), copy.deepcopy(sampled)):
        assert type(there) is list
        assert {type(episode) for episode in there} == {rllib.SingleAgentEpisode}
        assert [len(episode) for episode in there] == [1] * 16
        for values, same in zip(by_episodes(there), by_columns(sampled), strict=True):
            np.testing.assert_array_equal(values, same)


def test_a_row_is_what_rllib_itself_makes_of_its_step(rllib):
    sampled = two_buffers(rllib)[0].sample(8, beta=0.5)
    for row in sampled:
        made = rllib.SingleAgentEpisode(
            id_=row.id_,
            observations=row.observations.data,
            actions=row.actions.data,
            rewards=row.rewards.data,
            terminated=row.is_terminated,
            extra_model_outputs={name: steps.data for name, steps in row.extra_model_outputs.items()},
            len_lookback_buffer=0,
        )
        for slot in rllib.SingleAgentEpisode.__slots__:
            assert getattr(row, slot) == getattr(made, slot), slot
        row.validate()
    assert len({row.id_ for row in sampled}) == 8


def test_rows_share_nothing_that_can_be_changed(rllib):
    first, second = two_buffers(rllib)[0].sample(2, beta=0.5)
    shared = [
        getattr(first, slot)
        for slot in rllib.SingleAgentEpisode.__slots__
        if getattr(first, slot) is getattr(second, slot)
    ]
    assert {type(value) for value in shared} <= {type(None), bool, int, str, float}


def test_a_row_has_no_attributes_but_those_of_an_episode(rllib):
    row = two_buffers(rllib)[0].sample(1, beta=0.5)[0]
    assert not hasattr(row, "ids")
    assert len(row) == 1
    assert row.is_numpy is False


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
from pser.integrations.rllib import BUFFER, ReadyColumns, SACConfig

ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
buffer = {"type": BUFFER, "capacity": 500, "prioritization": pser.PSER(), "beta": 0.5, "seed": 0}
config = (
    SACConfig().environment("Pendulum-v1").env_runners(num_env_runners=0)
    .training(replay_buffer_config=buffer, num_steps_sampled_before_learning_starts=20, train_batch_size_per_learner=8)
    .learners(learner_connector=ReadyColumns)
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
again = config.copy(copy_frozen=False).learners(learner_connector=None).build_algo()
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
