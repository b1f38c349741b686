"""A jitted DQN in JAX (flax, optax) with the memory on the host.

pip install jax flax optax 'gymnasium[classic-control]'
python examples/jax_dqn.py
"""

import sys
import time

import flax.linen as nn
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax

import pser

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
WARMUP, BATCH, PERIOD = 1_000, 64, 500


class QNetwork(nn.Module):
    """Q(s, ·)."""

    @nn.compact
    def __call__(self, x):
        """One value per action."""
        x = nn.relu(nn.Dense(128)(x))
        x = nn.relu(nn.Dense(128)(x))
        return nn.Dense(2)(x)


network = QNetwork()
optimizer = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(5e-4))


@jax.jit
def act(params, observation):
    """The greedy action."""
    return network.apply(params, observation).argmax()


@jax.jit
def learn(params, target, state, batch):
    """One weighted update; returns the TD errors, for the memory."""

    def loss_of(params):
        best = network.apply(target, batch["next_observation"]).max(axis=1)
        goal = batch["reward"] + batch["discount"] * best
        chosen = jnp.take_along_axis(network.apply(params, batch["observation"]), batch["action"][:, None], 1)
        td_error = jax.lax.stop_gradient(goal) - chosen[:, 0]
        return (batch["weights"] * optax.huber_loss(td_error)).mean(), td_error

    gradients, td_error = jax.grad(loss_of, has_aux=True)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, td_error


def on_device(batch):
    """What the network needs, copied to the device: a batch's arrays are reused by the next sample."""
    wanted = ("observation", "action", "reward", "next_observation", "discount", "weights")
    return jax.device_put({name: np.array(getattr(batch, name)) for name in wanted})


env = gym.make("CartPole-v1")
memory = pser.ReplayMemory(
    50_000, env.observation_space, env.action_space, prioritization=pser.PSER(), n_step=3, gamma=0.99, seed=0
)
beta = pser.Anneal(start=0.4, end=1.0, steps=STEPS)
rng = np.random.default_rng(0)
params = network.init(jax.random.PRNGKey(0), jnp.zeros((1, 4)))
target, state = params, optimizer.init(params)
observation, _ = env.reset(seed=0)
copying = learning = 0.0
for step in range(STEPS):
    explore = rng.random() < max(0.05, 1 - step / (STEPS / 4))
    action = int(rng.integers(2)) if explore else int(act(params, observation))
    following, reward, terminated, truncated, _ = env.step(action)
    memory.add(observation, action, reward, following, terminated, truncated)
    observation = env.reset()[0] if terminated or truncated else following
    if step >= WARMUP:
        sampled = memory.sample(BATCH, beta(step))
        begin = time.perf_counter()
        batch = jax.block_until_ready(on_device(sampled))
        copied = time.perf_counter()
        params, state, td_error = learn(params, target, state, batch)
        memory.update_priorities(sampled.ids, td_error)  # a JAX array will do; this waits for the device
        copying, learning = copying + copied - begin, learning + time.perf_counter() - copied
    if step % PERIOD == 0:
        target = params

returns = []
for episode in range(20):
    observation, _ = env.reset(seed=10_000 + episode)
    returns.append(0.0)
    over = False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(int(act(params, observation)))
        returns[-1] += float(reward)
        over = terminated or truncated
print(f"mean return over 20 episodes: {np.mean(returns):.1f}")
updates = max(STEPS - WARMUP, 1)
print(
    f"an update: {1e6 * copying / updates:.0f} µs copying the batch, {1e6 * learning / updates:.0f} µs learning"
)
