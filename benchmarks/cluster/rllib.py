"""RLlib's DQN with its own prioritized buffer and with ours: as episodes, and as ready columns."""

import warnings
from typing import Any

import numpy as np

from benchmarks.cluster.spent import interleaved, measured, median, ratio

warnings.simplefilter("ignore")  # RLlib's own

import gymnasium  # noqa: E402
from ray.rllib.algorithms.dqn import DQNConfig  # noqa: E402
from ray.rllib.env.single_agent_episode import SingleAgentEpisode  # noqa: E402
from ray.rllib.utils.replay_buffers import PrioritizedEpisodeReplayBuffer  # noqa: E402

import pser  # noqa: E402
from pser.integrations.rllib import PSEREpisodeReplayBuffer, ReadyColumns  # noqa: E402

THEIRS, EPISODES, COLUMNS = "RLlib's PER", "pser, as episodes", "pser, as columns"
CAPACITY, EPISODE_STEPS, BATCH, BETA = 20_000, 200, 32, 0.4
SPACES = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32), gymnasium.spaces.Discrete(2)
"""CartPole's."""


def episodes(count: int) -> list[SingleAgentEpisode]:
    rng = np.random.default_rng(0)
    return [
        SingleAgentEpisode(
            observations=list(rng.random((EPISODE_STEPS + 1, 4), np.float32)),
            actions=list(rng.integers(0, 2, EPISODE_STEPS)),
            rewards=list(rng.random(EPISODE_STEPS)),
            terminated=True,
            len_lookback_buffer=0,
        )
        for _ in range(count)
    ]


def buffer_of(name: str) -> Any:
    if name == THEIRS:
        buffer = PrioritizedEpisodeReplayBuffer(capacity=CAPACITY, alpha=0.6)
    else:
        buffer = PSEREpisodeReplayBuffer(capacity=CAPACITY, prioritization=pser.PSER(alpha=0.6), seed=0)
    for episode in episodes(CAPACITY // EPISODE_STEPS):
        buffer.add(episode)
    return buffer


def measure(rounds: int, scale: float) -> dict[str, Any]:
    """CPU of sample + update, and of a whole learn step of DQN."""
    count, errors = max(2, int(200 * scale)), np.random.default_rng(1).random(BATCH)
    turns = {}
    for name in (THEIRS, EPISODES, COLUMNS):
        buffer = buffer_of(name)
        config = (
            DQNConfig()
            .training(lr=1e-4)
            .learners(learner_connector=ReadyColumns if name == COLUMNS else None)
        )
        learner = config.build_learner(spaces={"default_policy": SPACES, "__env__": SPACES})

        def draw(buffer: Any = buffer, name: str = name) -> None:
            for _ in range(count):
                sampled = buffer.sample(num_items=BATCH, n_step=1, beta=BETA, gamma=0.99)
                if name == EPISODES:  # they are made when looked into
                    for episode in sampled:
                        _ = episode.observations
                buffer.update_priorities(errors)

        def learn(buffer: Any = buffer, learner: Any = learner) -> None:
            for _ in range(count):
                sampled = buffer.sample(num_items=BATCH, n_step=1, beta=BETA, gamma=0.99)
                found = learner.update(episodes=sampled, timesteps={})
                buffer.update_priorities(np.concatenate(found["default_policy"]["td_error"].peek()))

        turns[f"{name}: draw"] = lambda work=draw: measured(work, count)
        turns[f"{name}: learn"] = lambda work=learn: measured(work, count)
    found = interleaved(turns, rounds)
    return {
        "rounds": rounds,
        "seconds": {name: median(segments, "own") for name, segments in found.items()},
        "times_theirs": {
            what: {
                name: ratio(found[f"{name}: {what}"], found[f"{THEIRS}: {what}"], "own")
                for name in (EPISODES, COLUMNS)
            }
            for what in ("draw", "learn")
        },
    }
