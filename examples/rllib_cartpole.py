"""CartPole with RLlib's DQN and prioritized sequence replay; the program of docs/how-to."""

import sys

import numpy as np
import ray
from ray.rllib.algorithms.dqn import DQNConfig

import pser
from pser.integrations.rllib import BUFFER, ReadyColumns

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 20
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
buffer = {
    "type": BUFFER,
    "capacity": 50_000,
    "prioritization": pser.PSER(),
    "beta": 0.5,
    "n_step": 1,
    "gamma": 0.99,
    "seed": 0,
}
config = (
    DQNConfig()
    .environment("CartPole-v1")
    .env_runners(num_env_runners=0, num_envs_per_env_runner=1)
    .training(replay_buffer_config=buffer, lr=5e-4, gamma=0.99, n_step=1, train_batch_size_per_learner=32)
    .learners(learner_connector=ReadyColumns)
    .evaluation(evaluation_duration=20, evaluation_config={"explore": False})
    .debugging(seed=0, log_level="ERROR")
)
algorithm = config.build_algo()
for _ in range(iterations):
    algorithm.train()
print("priorities:", algorithm.local_replay_buffer.memory.stats())
returns = algorithm.evaluate()["env_runners"]["episode_return_mean"]
print(f"mean return over 20 episodes: {np.round(returns, 1)}")
algorithm.stop()
ray.shutdown()
