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

from pser.env import game as shared
from pser.env.game import Bools, EpisodeTally, Ints, Observations, State, Step
from pser.errors import PserError
from pser.memory.spec import Array, Frames

FRAME_SKIP = 4
SCREEN = (84, 84)
STACK = 4
MAX_EPISODE_STEPS = 27_000
"""108,000 frames: half an hour of play."""
RESEED_STEPS = 5_000
"""Steps after which an environment takes a new seed when its game ends."""
_NO_CAP_FRAMES = 2**31 - 1


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
        ale_py = shared.need("ale_py", "Atari games", "'pser[atari]'")
        self._version = str(ale_py.__version__)
        rom = _find_rom(game)
        self.name = f"atari:{game_name(rom)}"
        self.num_envs = shared.check_count("num_envs", num_envs, 1)
        self._seed = shared.check_count("seed", seed, 0)
        self._life_loss = life_loss
        steps = shared.check_count("max_episode_steps", max_episode_steps or 0, 0)
        frames = min(steps * FRAME_SKIP, _NO_CAP_FRAMES) or _NO_CAP_FRAMES
        self._settings: dict[str, Any] = {
            # ale-py draws below its noop_max.
            "noop_max": shared.check_count("noop_max", noop_max, 0) + 1,
            "repeat_action_probability": shared.check_probability("sticky_actions", sticky_actions),
            "max_num_frames_per_episode": frames,
            "full_action_space": full_action_set,
            "frameskip": FRAME_SKIP,
            "maxpool": True,
            "reward_clipping": False,
            "use_fire_reset": False,
            # Lives are watched here: with ale-py's life_loss_info a lost life and a finished game look alike.
            "life_loss_info": False,
            "episodic_life": False,
            "autoreset_mode": "SameStep",
        }
        self._rom = rom
        self._env = ale_py.AtariVectorEnv(
            rom,
            self.num_envs,
            num_threads=shared.check_count("threads", threads, 0),
            stack_num=STACK,
            img_height=SCREEN[0],
            img_width=SCREEN[1],
            grayscale=True,
            **self._settings,
        )
        self.num_actions = int(self._env.single_action_space.n)
        self.observation: Array | Frames = Frames(SCREEN, stack=STACK)
        self._screen: _ColourScreen | None = None
        self._tally = EpisodeTally(self.num_envs)
        self._seedings = [0] * self.num_envs
        """How often each environment has taken a seed since `reset`."""
        self._played = [bytearray() for _ in range(self.num_envs)]
        """The actions of each environment since it took its seed."""
        self._observation: Observations = np.zeros((self.num_envs, STACK, *SCREEN), np.uint8)
        self._lives: npt.NDArray[np.int32] = np.zeros(self.num_envs, np.int32)

    def reset(self, seed: int | None = None) -> Observations:
        """Start all games anew, each with its own random stream drawn from the seed."""
        self._seed = self._seed if seed is None else shared.check_count("seed", seed, 0)
        self._seedings = [0] * self.num_envs
        self._played = [bytearray() for _ in range(self.num_envs)]
        self._tally.clear()
        self._screen = None
        self._reset_seeded(np.ones(self.num_envs, np.bool_))
        return self._observation

    def step(self, actions: Ints) -> Step:
        """Play one action for four frames in each game; a finished game is reset."""
        chosen = shared.check_actions(actions, self.num_envs, self.num_actions)
        # Every array is a fresh one of ale-py's, so none needs copying.
        next_observation, points, over, cut, info = self._env.step(actions.astype(np.int64, copy=False))
        for played, action in zip(self._played, chosen, strict=True):
            played.append(action)
        lives_before, self._lives = self._lives, info["lives"]
        self._observation = next_observation
        finished: Bools = over | cut
        any_finished = finished.any()
        if any_finished:
            next_observation = self._observation.copy()
            # The rows of games that go on are not set in final_obs.
            next_observation[finished] = info["final_obs"][finished]
            self._reseed(finished)
        terminated = over
        if self._life_loss:
            terminated = over | ((self._lives < lives_before) & ~finished)
        reward = points.astype(np.float64)
        episode_return, episode_length = self._tally.add(reward, finished if any_finished else None)
        return Step(
            reward=reward,
            next_observation=next_observation,
            terminated=terminated,
            truncated=cut & ~over,
            observation=self._observation,
            finished=finished,
            episode_return=episode_return,
            episode_length=episode_length,
        )

    def render(self) -> npt.NDArray[np.uint8]:
        """The screen of game 0 in colour, [210, 160, 3], from a second emulator that plays along."""
        if self._screen is None:
            self._screen = _ColourScreen(self._rom, self._settings)
        return self._screen.show(self._seed_of(0), self._played[0])

    def get_state(self) -> State:
        """Seeds and actions from which `set_state` plays the games up to here."""
        return {
            "name": self.name,
            "num_envs": self.num_envs,
            "seed": self._seed,
            "seedings": list(self._seedings),
            "played": np.frombuffer(b"".join(self._played), np.uint8).copy(),
            "played_steps": [len(played) for played in self._played],
            "checksums": [zlib.crc32(screens) for screens in self._observation],
            "ale_py": self._version,
            **self._tally.get_state(),
        }

    def set_state(self, state: State) -> Observations:
        """Play the saved actions again, and continue bit for bit. Takes as long as playing them once did."""
        shared.check_state(state, self.name, self.num_envs)
        self._seed = int(state["seed"])
        self._seedings = list(state["seedings"])
        self._screen = None
        ends = np.cumsum(state["played_steps"])
        whole = np.asarray(state["played"], np.uint8)
        self._played = [bytearray(part.tobytes()) for part in np.split(whole, ends[:-1])]
        self._replay()
        self._tally.set_state(state)
        if [zlib.crc32(screens) for screens in self._observation] != list(state["checksums"]):
            raise PserError(
                f"{self.name} does not play as it did when it was saved with ale-py {state['ale_py']} (this "
                f"is {self._version}): resume with the same ale-py and the same game settings"
            )
        return self._observation

    def close(self) -> None:
        """Close the emulators."""
        self._env.close()

    def _seed_of(self, stream: int) -> int:
        return shared.spread_seed(self._seed, stream, self._seedings[stream])

    def _reset_seeded(self, which: Bools) -> None:
        """Reset some environments with their current seeds; the others stay as they are."""
        seeds = np.array([self._seed_of(int(stream)) for stream in np.flatnonzero(which)])
        options = None if which.all() else {"reset_mask": which}
        self._observation, info = self._env.reset(seed=seeds, options=options)
        self._lives = info["lives"]

    def _reseed(self, finished: Bools) -> None:
        """Give a new seed to the environments whose game finished after enough steps with the old one."""
        due = finished & np.array([len(played) >= RESEED_STEPS for played in self._played])
        if not due.any():
            return
        for stream in np.flatnonzero(due):
            self._seedings[stream] += 1
            self._played[stream].clear()
        self._reset_seeded(due)

    def _replay(self) -> None:
        """Bring all environments to the end of their actions together: those with fewer start later."""
        total = max(len(played) for played in self._played)
        starts = np.array([total - len(played) for played in self._played])
        plan = np.zeros((total, self.num_envs), np.int64)
        for stream, played in enumerate(self._played):
            plan[starts[stream] :, stream] = np.frombuffer(played, np.uint8)
        self._reset_seeded(np.ones(self.num_envs, np.bool_))
        for now in range(total):
            if now and (starts == now).any():
                self._reset_seeded(starts == now)
            self._observation, _, _, _, info = self._env.step(plan[now])
            self._lives = info["lives"]
        if total and (starts == total).any():
            self._reset_seeded(starts == total)


class _ColourScreen:
    """A second emulator that follows game 0 and shows its full screen: the vector environment cannot draw."""

    def __init__(self, rom: str, settings: dict[str, Any]) -> None:
        import ale_py

        self._env = ale_py.AtariVectorEnv(
            rom, 1, num_threads=1, stack_num=1, img_height=210, img_width=160, grayscale=False, **settings
        )
        self._seed: int | None = None
        self._played = 0
        self._image: npt.NDArray[np.uint8] = np.zeros((210, 160, 3), np.uint8)

    def show(self, seed: int, played: bytearray) -> npt.NDArray[np.uint8]:
        """The screen after these actions; only those not yet played are played."""
        if seed != self._seed:
            observation, _ = self._env.reset(seed=np.array([seed]))
            self._seed, self._played = seed, 0
            self._image = observation[0, -1]
        for action in played[self._played :]:
            observation, *_ = self._env.step(np.array([action]))
            self._image = observation[0, -1]
        self._played = len(played)
        return self._image


def game_name(rom: str) -> str:
    """`MsPacman` of the cartridge `ms_pacman`: the name in `ALE/<Name>-v5`."""
    return rom.title().replace("_", "")


def game_names() -> list[str]:
    """The names of all games that come with ale-py."""
    roms = shared.need("ale_py.roms", "Atari games", "'pser[atari]'")
    return [game_name(rom) for rom in sorted(roms.get_all_rom_ids())]


def _find_rom(game: str) -> str:
    roms = shared.need("ale_py.roms", "Atari games", "'pser[atari]'")
    rom = shared.find_name(game, roms.get_all_rom_ids())
    if rom is None:
        raise shared.no_such("Atari game", game, game_names())
    return rom
