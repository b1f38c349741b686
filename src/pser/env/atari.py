"""Atari 2600 games with the preprocessing of Mnih et al. 2015, played by ale-py's vector environment.

The state of ale-py's vector environment cannot be read. But everything in it follows from the seed and the
actions since that seed was set, so these are what `get_state` gives, and `set_state` plays them again. To
keep that short, an environment takes a new seed at the first game that begins after `RESEED_STEPS` steps (a
seeded reset reloads the cartridge, about 0.1 s, which is why not every game has its own).
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from pser.env.checks import check_actions, check_count, check_probability, check_state
from pser.env.emulators import FRAME_SKIP, Emulators
from pser.env.game import Bools, Ints, Observations, State, Step
from pser.env.names import find_name, no_such
from pser.env.optional import need
from pser.env.seeds import spread_seed
from pser.env.tally import EpisodeTally
from pser.errors import PserError
from pser.spec import Array, Frames

SCREEN = (84, 84)
STACK = 4
MAX_EPISODE_STEPS = 27_000
"""108,000 frames: half an hour of play."""
RESEED_STEPS = 5_000
"""Steps after which an environment takes a new seed when its game ends."""


class AtariGame:
    """E copies of one Atari game; observations are its last four gray screens, newest last, [4, 84, 84].

    Each step repeats the action for four frames and keeps, pixel by pixel, the brighter of the last two.
    After a reset the three older screens are black.
    """

    frames_per_step = FRAME_SKIP
    exact_state = True

    def __init__(
        self,
        game: str,
        *,
        num_envs: int = 1,
        seed: int = 0,
        life_loss: bool = True,
        noop_max: int = 0,
        sticky_actions: float = 0.0,
        max_episode_steps: int | None = MAX_EPISODE_STEPS,
        full_action_set: bool = False,
        threads: int = 0,
    ) -> None:
        """Make the game; the defaults are those of training in the paper's experiments.

        Args:
            game: a name as in `ALE/<Name>-v5` (`Pong`, `MsPacman`).
            num_envs: how many copies are stepped together.
            seed: what `reset()` takes when it is given none.
            life_loss: a lost life ends the learning episode, though not the game.
            noop_max: games begin with 0 to this many frames (drawn uniformly) in which nothing is pressed.
            sticky_actions: probability per frame that the previous action is repeated instead of the new one.
            max_episode_steps: games are cut after this many steps (None or 0: never).
            full_action_set: offer all 18 actions instead of those that do something in this game.
            threads: threads that run the emulators (0: one per environment, up to the number of cores).
        """
        self._version = str(need("ale_py", "Atari games", "'pser[atari]'").__version__)
        self._rom = _find_rom(game)
        self.name = f"atari:{game_name(self._rom)}"
        self.num_envs = check_count("num_envs", num_envs, 1)
        self._seed = check_count("seed", seed, 0)
        self._life_loss = life_loss
        self._settings: dict[str, Any] = {
            "max_episode_steps": check_count("max_episode_steps", max_episode_steps or 0, 0),
            "noop_max": check_count("noop_max", noop_max, 0),
            "sticky_actions": check_probability("sticky_actions", sticky_actions),
            "full_action_set": full_action_set,
        }
        self._emulators = Emulators(
            self._rom,
            self.num_envs,
            threads=check_count("threads", threads, 0),
            stack_num=STACK,
            img_height=SCREEN[0],
            img_width=SCREEN[1],
            grayscale=True,
            **self._settings,
        )
        self.num_actions = self._emulators.num_actions
        self.observation: Array | Frames = Frames(SCREEN, stack=STACK)
        self._colour_screen: _ColourScreen | None = None
        self._tally = EpisodeTally(self.num_envs)
        self._seedings = [0] * self.num_envs
        """How often each environment has taken a new seed since `reset`."""
        self._played = [bytearray() for _ in range(self.num_envs)]
        """The actions of each environment since it took its seed."""

    def reset(self, seed: int | None = None) -> Observations:
        """Start all games anew, each with its own random generator seeded from the seed."""
        self._seed = self._seed if seed is None else check_count("seed", seed, 0)
        self._seedings = [0] * self.num_envs
        self._played = [bytearray() for _ in range(self.num_envs)]
        self._colour_screen = None
        self._tally.clear()
        self._reset_seeded(np.ones(self.num_envs, np.bool_))
        return self._emulators.observation

    def step(self, actions: Ints) -> Step:
        """Play one action for four frames in each game; a finished game is reset."""
        chosen = check_actions(actions, self.num_envs, self.num_actions)
        played = self._emulators.step(actions.astype(np.int64, copy=False))
        for history, action in zip(self._played, chosen, strict=True):
            history.append(action)
        finished = played.over | played.cut
        any_finished = finished.any()
        if any_finished:
            self._reseed(finished)
        terminated = played.over | played.life_lost if self._life_loss else played.over
        tally = self._tally.add(played.reward, finished if any_finished else None)
        return Step(
            reward=played.reward,
            next_observation=played.next_observation,
            terminated=terminated,
            truncated=played.cut & ~terminated,
            observation=self._emulators.observation,
            finished=finished,
            episode_return=tally[0],
            episode_length=tally[1],
        )

    def render(self) -> npt.NDArray[np.uint8]:
        """The screen of game 0 in colour, [210, 160, 3], from a second emulator that plays along."""
        if self._colour_screen is None:
            self._colour_screen = _ColourScreen(self._rom, self._settings)
        return self._colour_screen.show(self._seed_of(0), self._played[0])

    def get_state(self) -> State:
        """Seeds and actions from which `set_state` plays the games up to here."""
        return {
            "name": self.name,
            "num_envs": self.num_envs,
            "seed": self._seed,
            "seedings": list(self._seedings),
            "played": np.frombuffer(b"".join(self._played), np.uint8).copy(),
            "played_steps": [len(played) for played in self._played],
            "checksums": self._checksums(),
            "ale_py": self._version,
            **self._tally.get_state(),
        }

    def set_state(self, state: State) -> Observations:
        """Play the saved actions again, and continue bit for bit. Takes as long as playing them once did."""
        check_state(state, self.name, self.num_envs)
        self._seed = int(state["seed"])
        self._seedings = list(state["seedings"])
        self._colour_screen = None
        ends = np.cumsum(state["played_steps"])
        whole = np.asarray(state["played"], np.uint8)
        self._played = [bytearray(part.tobytes()) for part in np.split(whole, ends[:-1])]
        self._replay()
        self._tally.set_state(state)
        if self._checksums() != list(state["checksums"]):
            raise PserError(
                f"{self.name} does not play as it did when it was saved with ale-py {state['ale_py']} (this "
                f"is {self._version}): resume with the same ale-py and the same game settings"
            )
        return self._emulators.observation

    def close(self) -> None:
        """Close the emulators."""
        self._emulators.close()
        if self._colour_screen is not None:
            self._colour_screen.close()

    def _checksums(self) -> list[int]:
        return [zlib.crc32(screens) for screens in self._emulators.observation]

    def _seed_of(self, number: int) -> int:
        return spread_seed(self._seed, number, self._seedings[number])

    def _reset_seeded(self, which: Bools) -> None:
        """Reset some environments with their current seeds; the others stay as they are."""
        self._emulators.reset(which, [self._seed_of(number) for number in np.flatnonzero(which).tolist()])

    def _reseed(self, finished: Bools) -> None:
        """Give a new seed to the environments whose game finished after enough steps with the old one."""
        due = finished & np.array([len(played) >= RESEED_STEPS for played in self._played])
        if not due.any():
            return
        for number in np.flatnonzero(due):
            self._seedings[number] += 1
            self._played[number].clear()
        self._reset_seeded(due)

    def _replay(self) -> None:
        """Bring all environments to the end of their actions together: those with fewer start later."""
        total = max(len(played) for played in self._played)
        starts = np.array([total - len(played) for played in self._played])
        plan = np.zeros((total, self.num_envs), np.int64)
        for number, played in enumerate(self._played):
            plan[starts[number] :, number] = np.frombuffer(played, np.uint8)
        self._reset_seeded(np.ones(self.num_envs, np.bool_))
        for now in range(total):
            if now and (starts == now).any():
                self._reset_seeded(starts == now)
            self._emulators.step(plan[now])
        if total and (starts == total).any():
            self._reset_seeded(starts == total)


class _ColourScreen:
    """A second emulator that follows game 0 and shows its full screen: the vector environment cannot draw."""

    def __init__(self, rom: str, settings: dict[str, Any]) -> None:
        screen: dict[str, Any] = {"stack_num": 1, "img_height": 210, "img_width": 160, "grayscale": False}
        self._emulator = Emulators(rom, 1, threads=1, **settings, **screen)
        self._seed: int | None = None
        self._position = 0

    def show(self, seed: int, played: bytearray) -> npt.NDArray[np.uint8]:
        """The screen after these actions; only those not yet played are played."""
        if seed != self._seed:
            self._emulator.reset(np.ones(1, np.bool_), [seed])
            self._seed, self._position = seed, 0
        for action in played[self._position :]:
            self._emulator.step(np.array([action]))
        self._position = len(played)
        image: npt.NDArray[np.uint8] = self._emulator.observation[0, -1]
        return image

    def close(self) -> None:
        """Close the emulator."""
        self._emulator.close()


def game_name(rom: str) -> str:
    """`MsPacman` of the cartridge `ms_pacman`: the name in `ALE/<Name>-v5`."""
    return rom.title().replace("_", "")


def game_names() -> list[str]:
    """The names of all games that come with ale-py."""
    roms = need("ale_py.roms", "Atari games", "'pser[atari]'")
    return [game_name(rom) for rom in sorted(roms.get_all_rom_ids())]


def _find_rom(game: str) -> str:
    roms = need("ale_py.roms", "Atari games", "'pser[atari]'")
    rom = find_name(game, roms.get_all_rom_ids())
    if rom is None:
        raise no_such("Atari game", game, game_names())
    return rom
