"""CartPole with TorchRL's DQN loss and prioritized sequence replay; the program of docs/how-to."""

import sys

import torch
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, HardUpdate

import pser
from pser.integrations.torchrl import PSERSampler

frames = int(sys.argv[1]) if len(sys.argv) > 1 else 50_176
torch.set_num_threads(1)
torch.manual_seed(0)
kwargs = {"env_name": "CartPole-v1", "categorical_action_encoding": True}
game, env = GymEnv(**kwargs), SerialEnv(4, GymEnv, create_env_kwargs=kwargs)
env.set_seed(0)
network = MLP(in_features=4, out_features=2, num_cells=[256, 256], activation_class=torch.nn.ReLU)
actor = QValueActor(network, spec=game.action_spec, action_space="categorical")
explore = EGreedyModule(game.action_spec, eps_end=0.04, annealing_num_steps=8_000)
sampler = PSERSampler(pser.PSER(), td_errors="squared", seed=0)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100_000, ndim=2), sampler=sampler, batch_size=64)
loss = DQNLoss(actor, delay_value=True, loss_function="smooth_l1")  # its default γ is 0.99
target = HardUpdate(loss, value_network_update_interval=128)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
options = {"frames_per_batch": 256, "total_frames": frames, "auto_register_policy_transforms": True}
for data in Collector(env, TensorDictSequential(actor, explore), **options):
    buffer.extend(data)
    explore.step(data.numel())
    for _ in range(128):
        batch = buffer.sample()
        optimizer.zero_grad()
        loss(batch)["loss"].backward()
        optimizer.step()
        buffer.update_tensordict_priority(batch)
        target.step()
returns = [game.rollout(500, actor)["next", "reward"].sum().item() for _ in range(20)]
print(f"mean return over 20 episodes: {sum(returns) / 20:.1f}")
