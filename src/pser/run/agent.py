"""A trained agent, read back from its run."""

import torch

from pser.env.game import Game
from pser.learner.agent import Agent, make_agent
from pser.learner.device import configure_torch
from pser.learner.games import evaluation_game
from pser.learner.loop import observation_shape
from pser.learner.settings import TrainSettings
from pser.records.folder import RunFolder
from pser.records.manifest import read_manifest, settings_of
from pser.records.snapshot import read_snapshot
from pser.records.trust import imported_modules, refuse_imports


def load_agent(
    folder: RunFolder, snapshot: str, num_envs: int, *, trust_imports: bool = False
) -> tuple[Agent, Game, TrainSettings, int]:
    """The agent of a snapshot ("best" or "last"), games to play, the run's settings, its frames.

    `trust_imports`: the run's manifest may ask to import modules.
    """
    settings = settings_of(read_manifest(folder.manifest))
    refuse_imports(settings, folder.manifest, imported_modules(settings) if trust_imports else ())
    saved = read_snapshot(folder, snapshot)
    device: torch.device = configure_torch(settings.run.device, settings.run.threads)
    game = evaluation_game(settings, num_envs)
    agent = make_agent(settings, observation_shape(game.observation), game.num_actions, seed=0, device=device)
    agent.set_weights(saved.weights)
    return agent, game, settings, saved.frames
