"""Games by name: `atari:Pong`, `minatar:breakout`, `gym:CartPole-v1`."""

import importlib.util
from collections.abc import Mapping

from pser.env.game import Game
from pser.env.names import find_name, no_such
from pser.errors import PserError

FAMILIES = ("atari", "minatar", "gym")
OWNERS = {"life_loss": ("atari",), "noop_max": ("atari",), "sticky_actions": ("atari", "minatar")}
"""Setting of a game → the families that have it; with others it is off."""
TITLES = {"atari": "Atari", "minatar": "MinAtar"}
EVALUATION_NOOP_MAX = 30
"""The no-op starts of the paper's evaluations, in frames."""


def make_game(
    spec: str,
    *,
    num_envs: int = 1,
    seed: int = 0,
    evaluation: bool = False,
    life_loss: bool | None = None,
    noop_max: int | None = None,
    sticky_actions: float | None = None,
    max_episode_steps: int | None = None,
    threads: int = 0,
) -> Game:
    """Make E copies of the game that `spec` names.

    None takes the family's default, given here. A setting that a family does not have must be None or off.

    Args:
        spec: `atari:NAME`, `minatar:NAME` or `gym:ID`.
        num_envs: how many copies are stepped together.
        seed: what `reset()` takes when it is given none.
        evaluation: the defaults for measuring an agent instead of those for training it.
        life_loss: Atari: a lost life ends the learning episode, not the game (training: yes; evaluation: no).
        noop_max: Atari: games begin with 0 to this many idle frames (training: 0; evaluation: 30).
        sticky_actions: Atari and MinAtar: probability that the previous action is repeated (0; 0.1).
        max_episode_steps: games are cut after this many steps (Atari: 27,000; others: the game's own limit).
            0 leaves only the game's own limit.
        threads: Atari: threads that run the emulators (0: one per environment, up to the number of cores).
    """
    family, name = split_name(spec)
    if family == "atari":
        from pser.env import atari

        return atari.AtariGame(
            name,
            num_envs=num_envs,
            seed=seed,
            life_loss=not evaluation if life_loss is None else life_loss,
            noop_max=(EVALUATION_NOOP_MAX if evaluation else 0) if noop_max is None else noop_max,
            sticky_actions=0.0 if sticky_actions is None else sticky_actions,
            max_episode_steps=atari.MAX_EPISODE_STEPS if max_episode_steps is None else max_episode_steps,
            threads=threads,
        )
    _refuse_unowned(spec, life_loss=life_loss, noop_max=noop_max, sticky_actions=sticky_actions)
    if family == "minatar":
        from pser.env.minatar import MinAtarGame

        return MinAtarGame(
            name,
            num_envs=num_envs,
            seed=seed,
            sticky_actions=0.1 if sticky_actions is None else sticky_actions,
            max_episode_steps=max_episode_steps,
        )
    from pser.env.gymnasium import GymGame

    return GymGame(name, num_envs=num_envs, seed=seed, max_episode_steps=max_episode_steps)


def split_name(spec: str) -> tuple[str, str]:
    """The family and the name in it, of which only the family is known to exist."""
    family, _, name = spec.partition(":")
    if not name:
        raise _no_family(spec)
    if family not in FAMILIES:
        raise no_such("family of games", family, FAMILIES)
    return family, name


def unowned(spec: str, settings: Mapping[str, float | None]) -> list[str]:
    """Which of these settings are on although the family of the game does not have them."""
    family, _ = split_name(spec)
    return [name for name, value in settings.items() if value and family not in OWNERS[name]]


def _refuse_unowned(spec: str, **settings: float | None) -> None:
    for name in unowned(spec, settings):
        owners = " and ".join(TITLES[family] for family in OWNERS[name])
        raise PserError(f"{name} is for {owners} games, got {settings[name]} for {spec}: leave it at 0")


def _no_family(spec: str) -> PserError:
    """The error for a name without its family; it guesses the family where the name is a known game."""
    from pser.env.minatar import GAMES

    rule = f"a game is written FAMILY:NAME with FAMILY one of {', '.join(FAMILIES)}, got {spec!r}"
    name = spec.strip(":")
    minatar_name = find_name(name, GAMES)
    guesses = [f"minatar:{minatar_name}"] if minatar_name else []
    try:
        from pser.env.atari import game_names

        atari_name = find_name(name, game_names())
        guesses = ([f"atari:{atari_name}"] if atari_name else []) + guesses
    except PserError:
        pass  # Without ale-py there are no names to guess from.
    if not guesses and importlib.util.find_spec("gymnasium"):
        from gymnasium import registry

        gym_name = find_name(name, registry)
        guesses = [f"gym:{gym_name}"] if gym_name else []
    return PserError(
        f"{rule}: {'write ' + ' or '.join(guesses) if guesses else 'write for example atari:Pong'}"
    )
