"""CartPole with stable-baselines3's DQN and prioritized sequence replay; the program of docs/how-to."""

import sys

import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import pser
from pser.integrations.sb3 import DQN, PrioritizedReplayBuffer

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
torch.set_num_threads(1)
beta = pser.Anneal(start=0.4, end=1.0, steps=50_000)
model = DQN(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=4, seed=0),
    replay_buffer_class=PrioritizedReplayBuffer,
    replay_buffer_kwargs={"prioritization": pser.PSER(), "beta": beta},
    buffer_size=100_000,
    learning_starts=1_000,
    learning_rate=1e-3,
    batch_size=64,
    train_freq=64,
    gradient_steps=128,
    target_update_interval=40,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
    policy_kwargs={"net_arch": [256, 256]},
    seed=0,
)
model.learn(steps)
mean, deviation = evaluate_policy(model, make_vec_env("CartPole-v1", seed=1000), n_eval_episodes=20)
print(f"mean return over 20 episodes: {mean:.1f} ± {deviation:.1f}")
