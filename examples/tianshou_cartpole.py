"""CartPole with Tianshou's DQN and prioritized sequence replay; the program of docs/how-to."""

import sys

import gymnasium as gym
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import pser
from pser.integrations.tianshou import PrioritizedVectorReplayBuffer

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
torch.set_num_threads(1)
torch.manual_seed(0)
envs, tests = (DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(4)]) for _ in range(2))
envs.seed(0)
tests.seed(1000)
network = Net(state_shape=(4,), action_shape=2, hidden_sizes=[256, 256])
policy = DiscreteQLearningPolicy(model=network, action_space=gym.spaces.Discrete(2))
algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=128)
beta = pser.Anneal(start=0.4, end=1.0, steps=50_000)
buffer = PrioritizedVectorReplayBuffer(100_000, 4, pser.PSER(), beta=beta, seed=0)
collector, test_collector = Collector(algorithm, envs, buffer), Collector(algorithm, tests)
parameters = OffPolicyTrainerParams(
    training_collector=collector, test_collector=test_collector, test_step_num_episodes=20,
    training_fn=lambda epoch, step: policy.set_eps_training(max(0.04, 1 - step / 8_000)),
    max_epochs=5, epoch_num_steps=steps // 5, collection_step_num_env_steps=256, batch_size=64,
    update_step_num_gradient_steps_per_sample=0.5, show_progress=False, verbose=False,
)  # fmt: skip
algorithm.run_training(parameters)
test_collector.reset()
returns = test_collector.collect(n_episode=20).returns
print(f"mean return over 20 episodes: {returns.mean():.1f}")
