"""Hindsight experience replay (Andrychowicz et al. 2017) on transitions drawn by priority."""

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from pser.errors import PserError
from pser.integrations._shared import beta_at
from pser.integrations.sb3.buffers import NOT_GIVEN, Ints, PrioritizedDictReplayBuffer, Samples


class PrioritizedHerReplayBuffer(PrioritizedDictReplayBuffer, HerReplayBuffer):
    """SB3's HER buffer, sampled by priority among the transitions of finished episodes.

    The goals of a share of the batch are replaced, as in SB3; the TD error of such a row becomes the priority of the
    transition it was made from.
    """

    def __init__(self, *args: Any, n_steps: int = 1, **kwargs: Any) -> None:
        """SB3's arguments (`n_sampled_goal`, `goal_selection_strategy`, ...) and those of a prioritized buffer."""
        if n_steps != 1:
            raise PserError(f"a goal is replaced in single steps, got n_steps={n_steps}: leave n_steps at 1")
        super().__init__(*args, **kwargs)

    def sample(self, batch_size: int, env: VecNormalize | None = NOT_GIVEN) -> Samples:  # type: ignore[override]
        """Draw by priority, then replace goals in SB3's share of the rows."""
        ids, weights = self._draw_finished(batch_size)
        if env is NOT_GIVEN:
            env = None
        else:
            self._expect_updates()
        # Draws come in the order of the memory: shuffled, or it would always be the oldest whose goals are replaced.
        shuffled = np.random.permutation(batch_size)  # noqa: NPY002  # SB3 draws the goals from here, too
        virtual, real = np.split(shuffled, [int(self.her_ratio * batch_size)])
        parts = [
            self._get_real_samples(*self.places(ids[real]), env),
            self._get_virtual_samples(*self.places(ids[virtual]), env),
        ]
        order = np.concatenate([real, virtual])
        fields = (
            {key: th.cat([part.observations[key] for part in parts]) for key in parts[0].observations},
            th.cat([part.actions for part in parts]),
            {key: th.cat([part.next_observations[key] for part in parts]) for key in parts[0].observations},
            th.cat([part.dones for part in parts]),
            th.cat([part.rewards for part in parts]),
        )
        return self._handed_out(fields, ids[order], weights[order])

    def _draw_finished(self, batch_size: int) -> tuple[Ints, NDArray[np.float64]]:
        """As the index draws, but what belongs to a running or half-overwritten episode is drawn again."""
        if not (self.ep_length > 0).any():
            raise RuntimeError(
                "Unable to sample before the end of the first episode: choose learning_starts greater than the "
                "largest number of steps of an episode"
            )
        beta = beta_at(self.beta, self.index.next_id)
        ids, weights = self.index.sample(batch_size, beta)
        missing = self.ep_length[self.places(ids)] == 0
        drawn_again = missing.any()
        while missing.any():
            ids[missing], weights[missing] = self.index.sample(int(missing.sum()), beta)
            missing[missing] = self.ep_length[self.places(ids[missing])] == 0
        if drawn_again and getattr(self.index.prioritization, "weights", "batch") == "batch":
            probabilities = self.index.probabilities(ids)
            weights = (probabilities.min() / probabilities) ** beta
        return ids, weights

    def truncate_last_trajectory(self) -> None:
        """As in SB3: the running episodes end here."""
        super().truncate_last_trajectory()
        self.end_episodes()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "env"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.env = None
