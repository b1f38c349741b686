"""The games of a run: one set for training, one for evaluation."""

from pser.env.game import Game
from pser.env.make import make_game
from pser.learner.settings import TrainSettings


def training_game(settings: TrainSettings, num_envs: int = 0) -> Game:
    """The environments the agent learns in."""
    game = settings.game
    return make_game(
        game.env,
        num_envs=num_envs or game.num_envs,
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


def try_games(settings: TrainSettings) -> None:
    """Make one copy of the games of a run, and close it: what cannot be played is refused."""
    training_game(settings, num_envs=1).close()
    if settings.evaluation.eval_period_frames:
        evaluation_game(settings, num_envs=1).close()
