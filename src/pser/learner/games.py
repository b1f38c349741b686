"""The games of a run: one set for training, one for evaluation."""

from pser.env.game import Game
from pser.env.make import make_game
from pser.learner.settings import TrainSettings


def training_game(settings: TrainSettings) -> Game:
    """The environments the agent learns in."""
    game = settings.game
    return make_game(
        game.env,
        num_envs=game.num_envs,
        life_loss=game.life_loss,
        noop_max=game.noop_max,
        sticky_actions=game.sticky_actions,
        max_episode_steps=game.max_episode_steps,
        threads=settings.run.threads,
    )


def evaluation_game(settings: TrainSettings, num_envs: int = 0) -> Game:
    """The environments the agent is measured in: whole games, whatever a lost life means in training."""
    game, evaluation = settings.game, settings.evaluation
    return make_game(
        game.env,
        num_envs=num_envs or evaluation.eval_num_envs,
        life_loss=False,
        noop_max=evaluation.eval_noop_max,
        sticky_actions=game.sticky_actions,
        max_episode_steps=game.max_episode_steps,
        threads=settings.run.threads,
    )
