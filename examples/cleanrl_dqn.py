"""DQN on CartPole in one readable file, with prioritized sequence replay.

python examples/cleanrl_dqn.py --seed 1
python examples/cleanrl_dqn.py --prioritization per --total-timesteps 100000
"""

import random
import time
from dataclasses import dataclass
from typing import Literal

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import nn

import pser
from pser.collect import VectorRecorder


@dataclass
class Args:
    """Everything that can be set."""

    env_id: str = "CartPole-v1"
    """the Gymnasium environment, with discrete actions and a vector as observation"""
    seed: int = 0
    """seed of the networks, the environments and the memory"""
    num_envs: int = 4
    """environments stepped together"""
    total_timesteps: int = 50_000
    """transitions to collect in all environments"""
    learning_starts: int = 1_000
    """transitions collected before the first update"""
    updates_per_step: int = 2
    """gradient updates after each step of all environments"""
    target_period_updates: int = 128
    """updates between copies to the target network"""
    batch_size: int = 64
    learning_rate: float = 1e-3
    anneal_lr: bool = True
    """let the learning rate fall to 0 over the run, which steadies the last policy"""
    gamma: float = 0.99
    start_e: float = 1.0
    """exploration at the start"""
    end_e: float = 0.04
    """exploration at the end"""
    exploration_timesteps: int = 8_000
    """transitions over which exploration falls"""
    memory_size: int = 100_000
    prioritization: Literal["pser", "per", "uniform"] = "pser"
    n_step: int = 1
    """steps summed into the target before it bootstraps"""
    start_beta: float = 0.4
    """β of the importance-sampling weights at the start; 1 at the end"""
    eval_episodes: int = 20


class QNetwork(nn.Module):
    """Q(s, ·)."""

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        super().__init__()
        inputs, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
        self.network = nn.Sequential(
            nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, actions)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One value per action."""
        return self.network(x)


def evaluate(network: QNetwork, args: Args) -> float:
    """Mean return of the greedy policy."""
    env, returns = gym.make(args.env_id), []
    for episode in range(args.eval_episodes):
        observation, _ = env.reset(seed=10_000 + episode)
        returns.append(0.0)
        over = False
        while not over:
            with torch.no_grad():
                action = network(torch.as_tensor(observation)).argmax().item()
            observation, reward, terminated, truncated, _ = env.step(action)
            returns[-1] += float(reward)
            over = terminated or truncated
    return float(np.mean(returns))


def main(args: Args) -> float:
    """Train, then return the mean return of the greedy policy."""
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(args.seed)

    # SAME_STEP: the observation after a `done` is the next episode's first, and the last one comes as `final_obs`.
    envs = gym.vector.SyncVectorEnv(
        [lambda: gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id)) for _ in range(args.num_envs)],
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
    )
    q_network, target_network = QNetwork(envs), QNetwork(envs)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=args.learning_rate)

    choices = {"pser": pser.PSER(), "per": pser.PER(), "uniform": pser.Uniform()}
    memory = pser.ReplayMemory(
        capacity=args.memory_size,
        observation=envs.single_observation_space,
        action=envs.single_action_space,
        num_envs=args.num_envs,
        prioritization=choices[args.prioritization],
        n_step=args.n_step,
        gamma=args.gamma,
        seed=args.seed,
    )
    epsilon = pser.Anneal(start=args.start_e, end=args.end_e, steps=args.exploration_timesteps)
    beta = pser.Anneal(start=args.start_beta, end=1.0, steps=args.total_timesteps)
    learning_rate = pser.Anneal(
        start=args.learning_rate,
        end=0.0 if args.anneal_lr else args.learning_rate,
        steps=args.total_timesteps,
    )

    started, updates, recent = time.time(), 0, []
    recorder = VectorRecorder(envs, memory)
    observation, _ = recorder.reset(seed=args.seed)
    for global_step in range(0, args.total_timesteps, args.num_envs):
        # Act: ε-greedy, each environment on its own.
        with torch.no_grad():
            action = q_network(torch.as_tensor(observation)).argmax(dim=1).numpy()
        explore = rng.random(args.num_envs) < epsilon(global_step)
        action = np.where(explore, rng.integers(envs.single_action_space.n, size=args.num_envs), action)
        # The true next observation is stored. Both kinds of end stop the decay; only termination stops the bootstrap.
        observation, _, terminated, truncated, infos = recorder.step(action)
        for env in np.flatnonzero(terminated | truncated):
            recent = [*recent[-19:], float(infos["final_info"]["episode"]["r"][env])]

        # Learn.
        if global_step < args.learning_starts:
            continue
        optimizer.param_groups[0]["lr"] = learning_rate(global_step)
        for _ in range(args.updates_per_step):
            batch = memory.sample(args.batch_size, beta=beta(global_step), out="torch")
            with torch.no_grad():
                best_next = target_network(batch.next_observation).amax(dim=1)
                # `discount` is γ^n, or 0 where the episode terminated.
                target = batch.reward + batch.discount * best_next
            chosen = q_network(batch.observation).gather(1, batch.action[:, None]).squeeze(1)
            loss = (batch.weights * F.smooth_l1_loss(chosen, target, reduction="none")).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q_network.parameters(), 10.0)
            optimizer.step()
            memory.update_priorities(batch.ids, target - chosen)
            updates += 1
            if updates % args.target_period_updates == 0:
                target_network.load_state_dict(q_network.state_dict())

        if recent and global_step % 5_000 < args.num_envs:
            steps_per_second = int(global_step / (time.time() - started))
            print(f"step {global_step}: mean return {np.mean(recent):.0f}, {steps_per_second} steps/s")
    envs.close()
    return evaluate(q_network, args)


if __name__ == "__main__":
    arguments = tyro.cli(Args)
    print(f"mean return over {arguments.eval_episodes} episodes: {main(arguments):.1f}")
