"""DQN with PER on MinAtar Breakout, game and all, compiled whole by JAX: the fastest peer known.

    python -m benchmarks.train.jax_dqn STYLE ENVS PERIOD

STYLE is `idiomatic` (lax.conv) or `tuned` (the convolution as a matrix product over patches). Game, network, batch,
update period, optimizer and priorities are those of `plain`; the game is gymnax's, the memory flashbax's.
"""

import json
import os
import sys
import time
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import flashbax
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax

SEGMENT_FRAMES = 400
BATCH, CAPACITY, GAMMA, EPSILON, BETA = 32, 100_000, 0.99, 0.1, 0.4
TARGET_FRAMES = 1_000
FILTERS, HIDDEN = 16, 128

State = dict[str, Any]


def build(style: str, envs: int, period: int) -> tuple[State, Any]:
    """The state at the start, and the compiled function that trains for a segment."""
    env, rules = gymnax.make("Breakout-MinAtar")
    rows, columns, channels = env.observation_space(rules).shape
    positions = (rows - 2) * (columns - 2)
    optimizer = optax.rmsprop(2.5e-4, decay=0.95, eps=1e-4, eps_in_sqrt=True, centered=True)
    memory = flashbax.make_prioritised_flat_buffer(
        max_length=CAPACITY,
        min_length=BATCH,
        sample_batch_size=BATCH,
        add_sequences=False,
        add_batch_size=envs,
        priority_exponent=0.6,
        device="cpu",
    )

    def weights(key: Any, inputs: int, shape: tuple[int, ...]) -> Any:
        return jax.random.uniform(key, shape, minval=-1, maxval=1) / np.sqrt(inputs)

    def parameters(key: Any) -> State:
        one, two, three = jax.random.split(key, 3)
        features = positions * FILTERS
        return {
            "conv": weights(one, 9 * channels, (3, 3, channels, FILTERS)),
            "conv_bias": jnp.zeros(FILTERS),
            "hidden": weights(two, features, (features, HIDDEN)),
            "hidden_bias": jnp.zeros(HIDDEN),
            "last": weights(three, HIDDEN, (HIDDEN, env.num_actions)),
            "last_bias": jnp.zeros(env.num_actions),
        }

    def q_values(p: State, observation: Any) -> Any:
        x = observation.astype(jnp.float32)
        if style == "idiomatic":
            layout = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(x, p["conv"], (1, 1), "VALID", dimension_numbers=layout)
        else:
            shifts = [x[:, i : i + rows - 2, j : j + columns - 2, :] for i in range(3) for j in range(3)]
            x = jnp.concatenate(shifts, -1).reshape(-1, 9 * channels) @ p["conv"].reshape(
                9 * channels, FILTERS
            )
        x = jax.nn.relu(x + p["conv_bias"]).reshape(len(observation), -1)
        return jax.nn.relu(x @ p["hidden"] + p["hidden_bias"]) @ p["last"] + p["last_bias"]

    def learn(state: State, key: Any) -> State:
        batch = memory.sample(state["memory"], key)
        first, second = batch.experience.first, batch.experience.second
        value = q_values(state["target"], second["observation"]).max(-1)
        target = first["reward"] + GAMMA * (1 - first["done"]) * value
        is_weights = (1 / batch.probabilities) ** BETA
        is_weights = is_weights / is_weights.max()

        def loss(p: State) -> tuple[Any, Any]:
            q = jnp.take_along_axis(q_values(p, first["observation"]), first["action"][:, None], -1)[:, 0]
            return (is_weights * optax.huber_loss(target - q)).mean(), target - q

        gradient, delta = jax.grad(loss, has_aux=True)(state["online"])
        change, averages = optimizer.update(gradient, state["averages"], state["online"])
        told = memory.set_priorities(state["memory"], batch.indices, jnp.abs(delta) + 1e-4)
        online = optax.apply_updates(state["online"], change)
        return state | {"online": online, "averages": averages, "memory": told}

    def step(state: State, _: Any) -> tuple[State, None]:
        key, explore, random, play, draw = jax.random.split(state["key"], 5)
        greedy = q_values(state["online"], state["observation"]).argmax(-1)
        anything = jax.random.randint(random, (envs,), 0, env.num_actions)
        action = jnp.where(jax.random.uniform(explore, (envs,)) < EPSILON, anything, greedy)
        following, game, reward, done, *_ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            jax.random.split(play, envs), state["game"], action, rules
        )
        seen = {
            "observation": state["observation"] > 0,
            "action": action.astype(jnp.int32),
            "reward": reward.astype(jnp.float32),
            "done": done,
        }
        frames = state["frames"] + envs
        kept = memory.add(state["memory"], seen)
        state = state | {"memory": kept, "observation": following, "game": game, "key": key, "frames": frames}
        for number in range(max(1, envs // period)):
            state = learn(state, jax.random.fold_in(draw, number))
        due = frames // TARGET_FRAMES > (frames - envs) // TARGET_FRAMES
        target = jax.lax.cond(due, lambda: state["online"], lambda: state["target"])
        return state | {"target": target}, None

    def start(key: Any) -> State:
        key, made, played = jax.random.split(key, 3)
        online = parameters(made)
        observation, game = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(played, envs), rules)
        example = {
            "observation": observation[0] > 0,
            "action": jnp.int32(0),
            "reward": jnp.float32(0),
            "done": jnp.bool_(False),
        }
        return {
            "online": online,
            "target": online,
            "averages": optimizer.init(online),
            "memory": memory.init(example),
            "observation": observation,
            "game": game,
            "key": key,
            "frames": jnp.int32(0),
        }

    def segment(state: State) -> State:
        return jax.lax.scan(step, state, None, length=SEGMENT_FRAMES // envs)[0]

    return jax.jit(start)(jax.random.PRNGKey(0)), jax.jit(segment, donate_argnums=0)


def main() -> None:
    style, envs, period = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    assert envs >= period, "one update or more for each step of all environments"
    state, segment = build(style, envs, period)
    for _ in range(3):  # compile, and fill the memory
        state = jax.block_until_ready(segment(state))
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        state = jax.block_until_ready(segment(state))
        print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}), flush=True)


if __name__ == "__main__":
    main()
