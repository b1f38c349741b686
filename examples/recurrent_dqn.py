"""A recurrent DQN on a task that needs memory, with prioritized sequences.

A cue is shown in the first step of an episode; after a corridor without it, the right one of two answers must be given.

python examples/recurrent_dqn.py
python examples/recurrent_dqn.py --feed-forward
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import pser
from pser.collect import VectorRecorder

ENVS, BATCH, LENGTH, BURN_IN, GAMMA = 8, 32, 6, 8, 0.95


class Recall(gym.Env):
    """Observation: the cue (−1 or 1, in the first step only) and whether to answer now. Reward: 1 or −1, at the end."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, corridor: int = 8) -> None:
        self.corridor = corridor

    def reset(self, *, seed=None, options=None):
        """A new cue."""
        super().reset(seed=seed)
        self.cue, self.time = int(self.np_random.integers(2)), 0
        return np.array([2 * self.cue - 1, 0], np.float32), {}

    def step(self, action):
        """On through the corridor; at its end the action is the answer."""
        over = self.time == self.corridor
        reward = (1.0 if action == self.cue else -1.0) if over else 0.0
        self.time += 1
        return np.array([0, self.time == self.corridor], np.float32), reward, over, False, {}


class QNetwork(nn.Module):
    """Q(history, ·) with a recurrent layer, or Q(observation, ·) with a plain one in its place."""

    def __init__(self, recurrent: bool) -> None:
        super().__init__()
        self.memory = nn.GRU(2, 32, batch_first=True) if recurrent else None
        self.plain = nn.Linear(2, 32)
        self.values = nn.Linear(32, 2)

    def forward(self, observation, state=None):
        """(batch, steps, 2) → values (batch, steps, 2) and the state after the last step."""
        if self.memory is None:
            return self.values(torch.relu(self.plain(observation))), None
        hidden, state = self.memory(observation, state)
        return self.values(hidden), state


def learn(memory, online, target, optimizer, beta):
    """One update from windows of one episode each, their state warmed up by the steps before."""
    batch = memory.sample_sequences(BATCH, LENGTH, BURN_IN, beta=beta).torch()
    # Every observation of the window, and the last one after it: the state has seen all of them.
    observations = torch.cat([batch.observation[:, :1], batch.next_observation], dim=1)
    with torch.no_grad():
        best = online(observations)[0][:, 1:].argmax(dim=2, keepdim=True)
        after = target(observations)[0][:, 1:].gather(2, best).squeeze(2)
        goal = batch.reward + batch.discount * after
    td_error = goal - online(batch.observation)[0].gather(2, batch.action[..., None]).squeeze(2)
    huber = nn.functional.huber_loss(td_error, torch.zeros_like(td_error), reduction="none")
    loss = (batch.weights[:, None] * huber)[batch.learn].mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    memory.update_priorities(batch.ids, td_error, mask=batch.learn)


def evaluate(network, episodes=200):
    """Mean return of the greedy policy; 1 is perfect, 0 is guessing."""
    env, returns = Recall(), []
    env.reset(seed=10_000)
    for _ in range(episodes):
        (observation, _), state, over = env.reset(), None, False
        while not over:
            with torch.no_grad():
                values, state = network(torch.from_numpy(observation)[None, None], state)
            observation, reward, over, _, _ = env.step(int(values.argmax()))
        returns.append(reward)
    return float(np.mean(returns))


def train(recurrent, steps, seed):
    """Train for so many steps of every environment; returns the mean return of the greedy policy."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    mode = gym.vector.AutoresetMode.SAME_STEP
    envs = gym.vector.SyncVectorEnv([Recall] * ENVS, autoreset_mode=mode)
    online, target = QNetwork(recurrent), QNetwork(recurrent)
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
    memory = pser.ReplayMemory(
        20_000,
        envs.single_observation_space,
        envs.single_action_space,
        num_envs=ENVS,
        prioritization=pser.PSER(),
        gamma=GAMMA,
        seed=seed,
    )
    epsilon = pser.Anneal(start=1.0, end=0.1, steps=steps // 2)
    beta = pser.Anneal(start=0.4, end=1.0, steps=steps)
    recorder = VectorRecorder(envs, memory)
    (observation, _), state = recorder.reset(seed=seed), None
    for step in range(steps):
        with torch.no_grad():
            values, state = online(torch.from_numpy(observation)[:, None], state)
        explore = rng.random(ENVS) < epsilon(step)
        action = np.where(explore, rng.integers(2, size=ENVS), values[:, 0].argmax(dim=1).numpy())
        observation, _, terminated, truncated, _ = recorder.step(action)
        if state is not None:
            state[:, torch.from_numpy(terminated | truncated)] = 0.0  # a new episode remembers nothing
        if step >= 50:
            learn(memory, online, target, optimizer, beta(step))
        if step % 50 == 0:
            target.load_state_dict(online.state_dict())
    return evaluate(online)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1_000, help="of every environment")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--feed-forward", action="store_true", help="without the recurrent layer")
    arguments = parser.parse_args()
    scores = [train(not arguments.feed_forward, arguments.steps, seed) for seed in arguments.seeds]
    print(" ".join(f"{score:.2f}" for score in scores), f"mean return over seeds: {np.mean(scores):.2f}")
