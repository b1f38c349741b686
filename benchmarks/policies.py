"""Partly trained players for the games of `make bench`: linear in a coarse view of the screen, found by a short search.

`python -m benchmarks.policies` makes them again, a minute or two of CPU time a game, and keeps them in `policies.npz`,
and what they score beside random play in `policies.json`. They are no good players; but they do what random play does
not: hold a direction, aim, get further, and so fill a memory with other screens.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.settings import GAMES, SCORES
from pser.env.atari import AtariGame

FILE = Path(__file__).with_name("policies.npz")
PATCH = 12
"""Pixels, each way, that are seen as one."""
EPSILON = 0.1
"""Of its actions are random, as in training."""
PLAYERS = 8
STEPS = 300
"""That a candidate plays; twice as many to be chosen, and to be scored."""
ELITE = 4
HALVES = 2
"""Groups of candidates in a turn."""


class Scores(NamedTuple):
    """Points in a thousand steps."""

    random: float
    trained: float


def view(observation: np.ndarray) -> np.ndarray:
    """What a policy sees of (E, 4, 84, 84): the newest screen, and what moved, coarsely; and a one."""
    newest, before = observation[:, -1].astype(np.float32), observation[:, -2].astype(np.float32)
    count, side = len(newest), newest.shape[-1] // PATCH

    def coarse(screen: np.ndarray) -> np.ndarray:
        return screen.reshape(count, side, PATCH, side, PATCH).mean((2, 4)).reshape(count, -1) / 64

    return np.concatenate([coarse(newest), coarse(np.abs(newest - before)), np.ones((count, 1))], axis=1)


class Policy:
    """A player: the action whose row of weights answers most to the view, or one at random."""

    def __init__(self, weights: np.ndarray, rng: np.random.Generator) -> None:
        """`weights`: (actions, seen), or (E, actions, seen) with those of each environment."""
        self._weights, self._rng = weights.astype(np.float32), rng

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """An action for each environment."""
        seen = view(observation)
        weights = np.broadcast_to(self._weights, (len(seen), *self._weights.shape[-2:]))
        best = np.einsum("eas,es->ea", weights, seen).argmax(axis=1)
        other = self._rng.integers(0, self._weights.shape[-2], len(seen))
        return np.where(self._rng.random(len(seen)) < EPSILON, other, best)


def trained(name: str, rng: np.random.Generator) -> Policy:
    """The player of a game that is kept."""
    with np.load(FILE) as kept:
        return Policy(kept[name], rng)


def points(game: AtariGame, policy: Policy, seed: int, steps: int) -> np.ndarray:
    """That each environment makes in so many steps."""
    observation, total = np.array(game.reset(seed)), np.zeros(game.num_envs)
    for _ in range(steps):
        step = game.step(policy(observation))
        total += step.reward
        observation = np.array(step.observation)
    return total


def search(name: str, seconds: float, seed: int = 0) -> tuple[np.ndarray, Scores]:
    """Cross-entropy search: candidates around a mean, which moves to the best; then a score, on other seeds."""
    rng = np.random.default_rng(seed)
    game = AtariGame(name, num_envs=PLAYERS, seed=seed, threads=1)
    shape = (game.num_actions, view(np.zeros((1, 4, 84, 84), np.uint8)).shape[1])
    mean, spread, best = np.zeros(shape), np.ones(shape), list[tuple[float, np.ndarray]]()
    began, turn = time.process_time(), 0
    while time.process_time() - began < seconds:
        tried: list[tuple[float, np.ndarray]] = []
        for half in range(HALVES):
            candidates = mean + spread * rng.normal(size=(PLAYERS, *shape))
            found = points(game, Policy(candidates, rng), seed + 100 * turn + 10 * half, STEPS)
            tried += list(zip(found.tolist(), candidates, strict=True))
        tried.sort(key=lambda pair: -pair[0])
        elite = np.stack([weights for _, weights in tried[:ELITE]])
        mean, spread = elite.mean(axis=0), 0.9 * elite.std(axis=0) + 0.05
        best = sorted([*best, *tried[:2]], key=lambda pair: -pair[0])[: PLAYERS - 1]
        turn += 1
    # The best may have been lucky: those that were ever best, and the mean, play again, each for itself.
    finalists = np.stack([mean, *(weights for _, weights in best)])[np.arange(PLAYERS) % (len(best) + 1)]
    again = points(game, Policy(finalists, rng), seed + 50_000, 2 * STEPS)
    chosen = finalists[int(again.argmax())].astype(np.float16)
    per_thousand = 1000 / (2 * STEPS)
    return chosen, Scores(
        *(
            float(points(game, policy, seed + 60_000, 2 * STEPS).mean()) * per_thousand
            for policy in (Random(chosen, rng), Policy(chosen, rng))
        )
    )


class Random(Policy):
    """Every action at random."""

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """An action for each environment."""
        return self._rng.integers(0, self._weights.shape[-2], len(observation))


def main() -> None:
    """Search, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of CPU time, for the search of each game"
    )
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=GAMES)
    options = parser.parse_args()
    kept: dict[str, np.ndarray] = {}
    scores: dict[str, dict[str, float]] = {}
    if FILE.exists():
        with np.load(FILE) as before:
            kept = {key: before[key] for key in before.files}
        scores = json.loads(SCORES.read_text())
    for name in options.games:
        weights, found = search(name, options.seconds)
        kept[name], scores[name] = weights, found._asdict()
        np.savez_compressed(FILE, **kept)  # type: ignore[arg-type]
        SCORES.write_text(json.dumps(scores, indent=1) + "\n")
        print(f"{name:<12} {found.random:10.1f} at random {found.trained:10.1f} trained", flush=True)


if __name__ == "__main__":
    main()
