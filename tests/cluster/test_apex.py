"""`pser train --engine ray` beyond the processes: the run of one process when synchronous, Ape-X otherwise."""

import contextlib
import itertools
import json
import os
import re
import sys

import numpy as np
import pytest
from scipy.stats import chisquare

pytest.importorskip("torch")

import pser
from cluster.direct import DirectCalls
from pser.cli import main, train
from pser.cli.train_engine import engine_of
from pser.cli.train_flags import given_flags
from pser.cluster import engine
from pser.cluster.apex import ApexTrainer
from pser.cluster.calls import Lost
from pser.cluster.player import Player
from pser.cluster.settings import ClusterSettings, from_json
from pser.cluster.shard import Shard
from pser.cluster.training import RayEngine, facts_of
from pser.errors import PserError
from pser.learner.events import IntervalLogged, Remark
from pser.learner.presets import preset_settings
from pser.records.checkpoint import CheckpointWriter, read_newest_checkpoint, write_checkpoint
from pser.records.folder import RunFolder
from pser.run.progress import Quiet
from pser.run.training import resume_run, start_run
from run.same_run import differences

SMALL = {
    "budget_frames": 400,
    "warmup_steps": 100,
    "capacity": 250,
    "batch_size": 8,
    "update_period_steps": 4,
    "target_period_steps": 50,
    "hidden": (8,),
    "log_period_frames": 100,
    "checkpoint_period_frames": 200,
    "eval_period_frames": 200,
    "eval_episodes": 2,
    "eval_num_envs": 2,
    "tensorboard": False,
}


UNHARMED = {"actors_lost": 0, "shards_lost": 0, "steps_lost": 0, "longest_recovery_seconds": 0.0}


def cartpole(**changes):
    return preset_settings("classic", "gym:CartPole-v1").override({**SMALL, **changes})


def minatar(**changes):
    return preset_settings("minatar", "minatar:breakout").override({**SMALL, **changes})


def atari(**changes):
    small = {"budget_frames": 160, "warmup_steps": 20, "num_envs": 2, "max_episode_steps": 15}
    small |= {"eval_frames": 0, "eval_num_envs": 1, "eval_noop_max": 0, "log_period_frames": 80}
    return preset_settings("paper", "atari:Pong").override({**SMALL, **small, **changes})


def rows(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


class Killing(Quiet):
    """Ends the run at a row of its records, as a signal to the learner would."""

    def __init__(self, frames):
        self.frames = frames

    def logged(self, row):
        if row["frames"] >= self.frames:
            raise SystemExit(137)


class DirectEngine(RayEngine):
    """As RayEngine, in this process."""

    @contextlib.contextmanager
    def open(self, settings):
        self.cluster.check(settings)
        with contextlib.closing(trainer(settings, self.cluster)) as made:
            yield made


def trainer(settings, cluster):
    return ApexTrainer(settings, cluster, facts_of(settings), DirectCalls())


def synchronous(settings, kind=DirectEngine):
    return kind(ClusterSettings(actors=1, envs_per_actor=settings.game.num_envs, synchronous=True))


@pytest.mark.parametrize(
    "settings",
    [
        cartpole(initial="td"),
        cartpole(replay="per", num_envs=1, epsilon_start=0.4),
        cartpole(replay="uniform", double_q=False),
        cartpole(loss="c51", initial="td", priority_signal="kl", dueling=True),
        cartpole(loss="c51", noisy=True, initial="td"),
        minatar(num_envs=2, initial="td", epsilon_spread=7.0, decay="add"),
        atari(n_step=3, initial="td", clip_rewards=True, life_loss=True),
    ],
    ids=["pser-td", "per", "uniform", "c51", "noisy", "minatar-add-td", "atari"],
)
def test_step_by_step_it_is_the_run_of_one_process_to_the_bit(settings, tmp_path):
    start_run(settings, "x", tmp_path / "local", Quiet())
    start_run(settings, "x", tmp_path / "apex", Quiet(), engine=synchronous(settings))
    assert rows(tmp_path / "apex")[-1]["updates"] > 0
    assert differences(tmp_path / "apex", tmp_path / "local") == []


def test_step_by_step_it_goes_on_from_a_checkpoint_to_the_bit(tmp_path):
    settings = cartpole(initial="td")
    start_run(settings, "x", tmp_path / "local", Quiet())
    with pytest.raises(SystemExit):
        start_run(settings, "x", tmp_path / "apex", Killing(300), engine=synchronous(settings))
    resume_run(tmp_path / "apex", Quiet(), engine=synchronous(settings))
    assert differences(tmp_path / "apex", tmp_path / "local") == []


@pytest.mark.parametrize(
    ("settings", "cluster"),
    [
        (cartpole(initial="td", num_envs=4), ClusterSettings(actors=2, envs_per_actor=2, chunk_steps=10)),
        (minatar(num_envs=3, initial="td"), ClusterSettings(actors=3, shards=2, chunk_steps=15)),
        (
            cartpole(replay="per", is_weights="memory", num_envs=2, n_step=1),
            ClusterSettings(actors=2, shards=2, chunk_steps=1),
        ),
        (
            cartpole(loss="c51", noisy=True, initial="td", num_envs=2),
            ClusterSettings(actors=2, chunk_steps=10),
        ),
        (atari(initial="td", n_step=3), ClusterSettings(actors=2, shards=2, chunk_steps=7)),
    ],
    ids=["cartpole", "minatar-two-shards", "per-two-shards", "rainbow", "atari"],
)
def test_the_updates_follow_the_steps_at_every_moment(settings, cluster):
    made = trainer(settings, cluster)
    budget = settings.run.budget_frames // made.game.frames_per_step
    warmup, period = settings.agent.warmup_steps, settings.agent.update_period_steps
    logged = []
    for event in made.train():
        # Nobody is ahead by more than two chunks, and nobody plays beyond the budget.
        ahead = 2 * cluster.num_envs * cluster.chunk_steps
        assert made.crew.steps_asked <= min(ahead, budget - made.counters.steps)
        if isinstance(event, IntervalLogged):
            logged.append(event.row)
            assert event.row["updates"] == max(0, event.row["steps"] // period - warmup // period)
    last = logged[-1]
    assert last["steps"] == budget
    assert last["cluster"] == UNHARMED
    memory = last["memory"]
    assert memory["added"] <= budget
    assert memory["capacity"] == 250
    told = memory["updates_applied"] + memory["updates_skipped_stale"]
    assert told >= (last["updates"] - 2) * 8 if settings.replay.replay != "uniform" else told == 0


def test_every_environment_of_every_actor_explores_by_its_own_share():
    settings = cartpole(num_envs=4, epsilon_start=0.4, epsilon_end=0.4, epsilon_spread=7.0)
    made = trainer(settings, ClusterSettings(actors=2, envs_per_actor=2, chunk_steps=5))
    asked = {}
    ask = made.crew.ask
    made.crew.ask = lambda actor, steps, epsilon, *rest: (
        asked.setdefault(actor, epsilon),
        ask(actor, steps, epsilon, *rest),
    )
    next(event for event in made.train() if isinstance(event, IntervalLogged))
    shares = np.concatenate([asked[0], asked[1]])
    np.testing.assert_array_equal(shares, 0.4 ** (1 + 7 * np.arange(4) / 3))


def test_several_shards_draw_by_the_mass_of_all():
    settings = cartpole(num_envs=3, capacity=204, warmup_steps=102, budget_frames=102, n_step=1, initial="td")
    made = trainer(settings, ClusterSettings(actors=3, shards=2, chunk_steps=34))
    for _ in made.train():
        pass
    shards = [handle.held for handle in made._calls.handles if isinstance(handle.held, Shard)]
    # Shard 0 holds two thirds of the steps and, made hot, nearly all of the mass.
    hot = np.arange(20)
    shards[0].memory.set_priorities(hot, np.full(20, 50.0))
    ids = [np.arange(len(shard.memory)) for shard in shards]
    masses = [shard.memory.priorities(own) ** 0.5 for shard, own in zip(shards, ids, strict=True)]
    whole = np.concatenate(masses) / sum(mass.sum() for mass in masses)
    exact = dict(zip([*(ids[0] * 2), *(ids[1] * 2 + 1)], whole, strict=True))
    made.replay.draw(8, 0.5)  # drawn with the masses as they were
    made.replay._ready.clear()
    made.replay._collected(made.replay._fetches.popleft())
    count = dict.fromkeys(exact, 0)
    for _ in range(1000):
        batch = made.replay.draw(8, 0.5)
        expected = np.array([exact[i] for i in batch.ids])
        np.testing.assert_allclose(batch.probabilities, expected, rtol=1e-12)
        np.testing.assert_allclose(batch.weights, (expected.min() / expected) ** 0.5, rtol=1e-6)
        for i in batch.ids:
            count[i] += 1
    seen, wanted = np.array([count[i] for i in exact]), 8000 * whole
    assert wanted.min() >= 5
    assert chisquare(seen, wanted).pvalue > 1e-3


def test_a_lost_actor_is_replaced_and_its_episodes_end():
    settings = cartpole(num_envs=2, n_step=1, budget_frames=800, capacity=2000)
    made = trainer(settings, ClusterSettings(actors=2, chunk_steps=10))
    (shard,) = (handle.held for handle in made._calls.handles)
    add, added, cut = shard.add, [], None

    def watched(updates, largest, streams, chunk):
        added.append((shard.memory.index.next_id, *streams))
        add(updates, largest, streams, chunk)

    shard.add = watched
    remarks = []
    for event in made.train():
        if isinstance(event, Remark):
            remarks.append(event.text)
            cut = cut or shard.memory.index.next_id
        if isinstance(event, IntervalLogged) and event.row["steps"] == 300:
            made._calls.kill(Player)  # the newest is that of actor 1
    assert remarks[0] == "actor 1 was lost (killed): another plays on, in new episodes"
    assert re.fullmatch(r"actor 1 works again, \d+\.\d s after its loss was noticed", remarks[1])
    assert len(remarks) == 2
    assert made.losses.longest_seconds > 0.0
    assert made.counters.steps == 800
    assert (made.losses.actors, made.crew.serial) == (1, 3)
    terminated, crossed = shard.memory.columns()["terminated"], 0
    for stream in (0, 1):
        begins = [first for first, own in added if own == stream]
        for before, after in itertools.pairwise(begins):
            last = before + 9
            ended = terminated[last] or (stream == 1 and before < cut <= after)
            assert shard.memory.predecessors([after], 1)[0, 0] == (-1 if ended else last)
            crossed += not ended
    assert crossed > 20  # elsewhere episodes go on from chunk to chunk


def test_an_actor_that_dies_again_and_again_ends_the_run(monkeypatch):
    made = trainer(cartpole(num_envs=2), ClusterSettings(actors=2, chunk_steps=10))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    start = made._calls.start

    def stillborn(role, *arguments):
        handle = start(role, *arguments)
        handle.alive = role is not Player
        return handle

    made._calls.start = stillborn
    with pytest.raises(PserError, match="actor 0 was lost 4 times in a row") as error:
        list(made.train())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("role", [Player, Shard])
def test_losses_in_a_row_are_those_without_an_answer_between(role, monkeypatch):
    made = trainer(cartpole(num_envs=2, budget_frames=800), ClusterSettings(actors=2, chunk_steps=10))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for event in made.train():
        if isinstance(event, IntervalLogged) and event.row["steps"] <= 500:
            made._calls.kill(role)  # the newest: always the one in the same place
    assert (made.losses.actors if role is Player else made.losses.shards) == 5
    assert made.counters.steps == 800


def saved(made, folder):
    """A checkpoint of a trainer."""
    return write_checkpoint(folder, made.frames, {}, made.memory)


def heads(checkpoint):
    """The files of a checkpoint but for the parts that they name."""
    return {path.name for path in checkpoint.iterdir() if path.suffix == ".pser"}


def test_shards_save_what_is_new_and_link_the_rest(tmp_path):
    settings = cartpole(num_envs=2, budget_frames=500, capacity=2000)
    made = trainer(settings, ClusterSettings(actors=2, shards=2, chunk_steps=10))
    writer, links = CheckpointWriter(tmp_path), []
    for event in made.train():
        if isinstance(event, IntervalLogged):
            writer.write(made.frames, {}, made.memory)
            writer.wait()
            newest = max(tmp_path.iterdir())
            sizes = [len(pser.ReplayMemory.load(newest / name)) for name in ("memory.pser", "memory-1.pser")]
            assert sum(sizes) == event.row["memory"]["size"]
            links.append({path.name for path in newest.iterdir() if path.suffix != ".pser"})
    shared = [one & other for one, other in itertools.pairwise(links)]
    assert not any(shared)  # the two that are kept share no file
    assert all(len(one & other) >= 2 for one, other in zip(links, links[2:], strict=False))


def test_shards_go_on_from_the_save_they_were_loaded_from(tmp_path):
    settings = cartpole(num_envs=2, capacity=2000)
    made, again = (trainer(settings, ClusterSettings(actors=2, shards=2, chunk_steps=10)) for _ in range(2))
    list(made.train(200))
    saved(made, tmp_path)
    checkpoint = read_newest_checkpoint(tmp_path, again.load_memory)
    writer = CheckpointWriter(tmp_path, checkpoint)
    for frames in (300, 400):
        list(again.train(frames))
        writer.write(frames, {}, again.memory)
        writer.wait()
        if frames == 300:
            before = {path.name: path.stat().st_ino for path in checkpoint.path.iterdir()}
    newest = {path.name: path.stat().st_ino for path in max(tmp_path.iterdir()).iterdir()}
    linked = {name for name in before if newest.get(name) == before[name]}
    assert {name.partition(".pser.")[0] for name in linked} == {"memory", "memory-1"}


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_lost_shard_comes_back_as_its_snapshot_was(tmp_path, snapshot):
    settings = cartpole(num_envs=2, budget_frames=800, capacity=2000)
    made = trainer(settings, ClusterSettings(actors=2, chunk_steps=10))
    remarks, logged, size, back = [], [], 0, None
    for event in made.train():
        if isinstance(event, Remark):
            remarks.append(event.text)
            back = made._calls.handles[-1].held.memory
        if not isinstance(event, IntervalLogged):
            continue
        logged.append(event.row)
        if event.row["steps"] == 300 and snapshot:
            saved(made, tmp_path)
            size = event.row["memory"]["size"]
        if event.row["steps"] == 400:
            made._calls.kill(Shard)
    remark, again = remarks
    assert re.fullmatch(r"shard 0 works again, \d+\.\d s after its loss was noticed", again)
    lost = made.losses.steps
    assert remark == (
        f"shard 0 was lost (killed), and {lost} steps with it: it goes on from its last snapshot"
    )
    # What was added since the snapshot (or ever), and what was on its way when the loss was noticed.
    assert (100 if snapshot else 400) <= lost <= (100 if snapshot else 400) + 90
    seconds = logged[-1]["cluster"].pop("longest_recovery_seconds")
    assert 0.0 < made.losses.longest_seconds == pytest.approx(seconds, abs=0.01)
    assert logged[-1]["cluster"] == {"actors_lost": 0, "shards_lost": 1, "steps_lost": lost}
    assert back is made._calls.handles[-1].held.memory
    assert size <= len(back) <= 800 - lost
    back.check_invariants()
    assert made.counters.steps == 800
    assert logged[-1]["updates"] >= 140


def test_ids_of_a_shards_earlier_life_change_nothing_in_the_next():
    made = trainer(cartpole(num_envs=2), ClusterSettings(actors=2, chunk_steps=10))
    for event in made.train():
        if isinstance(event, IntervalLogged) and event.row["steps"] == 200:
            break
    batch = made.replay.draw(8, 0.5)
    made._calls.kill(Shard)
    made.replay.stats()
    made.replay.learned(batch, np.full(8, 99.0, np.float32))
    assert made.replay.stats()["updates_applied"] == 0
    assert made.replay.places[0].pending == []


@pytest.mark.parametrize("at_once", [False, True])
def test_a_shard_that_is_lost_while_a_checkpoint_loads_loads_it_anew(tmp_path, at_once):
    settings = cartpole(num_envs=2, n_step=1)
    cluster = ClusterSettings(actors=1, envs_per_actor=2, synchronous=True) if at_once else ClusterSettings()
    made, again = trainer(settings, cluster), trainer(settings, cluster)
    list(made.train(200))
    saved(made, tmp_path)
    again._calls.kill(Shard)
    checkpoint = read_newest_checkpoint(tmp_path, again.load_memory)
    again.set_state(made.get_state(), checkpoint.memory)
    assert again.replay.stats()["size"] == made.replay.stats()["size"]
    assert (again.losses.shards, again._remarks) == (0, [])  # no step went with it
    assert again.replay.places.generations == (1,)


def test_a_lost_shard_does_not_come_back_from_a_checkpoint_that_was_skipped(tmp_path):
    settings, cluster = cartpole(num_envs=2, n_step=1), ClusterSettings(actors=2, shards=2, chunk_steps=10)
    made, again = trainer(settings, cluster), trainer(settings, cluster)
    for frames in (120, 200):
        list(made.train(frames))
        saved(made, tmp_path)
    damaged = max(tmp_path.iterdir()) / "memory.pser"  # the first shard's; the other's file is whole
    damaged.write_bytes(damaged.read_bytes()[:500])
    with pytest.warns(UserWarning, match="is damaged and was skipped"):
        read_newest_checkpoint(tmp_path, again.load_memory)
    before = again.replay.stats()["size"]
    assert before == 120
    again._calls.kill(Shard)
    assert again.replay.stats()["size"] == before
    assert again.losses.shards == 1


def test_a_checkpoint_whose_shards_die_of_it_is_not_called_damaged(tmp_path, monkeypatch):
    made, again = (trainer(cartpole(num_envs=2), ClusterSettings(actors=2, shards=2)) for _ in range(2))
    list(made.train(200))
    saved(made, tmp_path)

    def dies(shard, path):
        raise Lost("out of memory")

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(Shard, "load", dies)
    with pytest.raises(PserError, match=r"shard 0 was lost 4 times in a row \(out of memory\)"):
        read_newest_checkpoint(tmp_path, again.load_memory)


def test_a_shard_that_is_lost_while_saving_is_saved_as_its_snapshot_was(tmp_path):
    made = trainer(cartpole(num_envs=2), ClusterSettings(actors=2, shards=2, chunk_steps=10))
    for event in made.train():
        if isinstance(event, IntervalLogged) and event.row["steps"] == 200:
            saved(made, tmp_path)
        if isinstance(event, IntervalLogged) and event.row["steps"] == 300:
            break
    made._calls.kill(Shard)
    saved(made, tmp_path)
    assert made.losses.shards == 1
    newest, before = sorted(tmp_path.iterdir(), reverse=True)
    assert heads(newest) == {"state.pser", "memory.pser", "memory-1.pser"}
    assert (newest / "memory.pser").read_bytes() != (before / "memory.pser").read_bytes()
    sizes = [len(pser.ReplayMemory.load(path / "memory-1.pser")) for path in (newest, before)]
    assert sizes[0] - sizes[1] in range(3)  # unfinished 3-step transitions were completed


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path):
    settings = minatar(num_envs=2, budget_frames=600, initial="td")
    direct = DirectEngine(ClusterSettings(actors=2, shards=2, chunk_steps=20))
    run = tmp_path / "run"
    with pytest.raises(SystemExit):
        start_run(settings, "x", run, Killing(300), engine=direct)
    assert heads(next((run / "checkpoints").iterdir())) == {"state.pser", "memory.pser", "memory-1.pser"}
    resume_run(run, Quiet(), engine=direct)
    found = rows(run)
    frames = [row["frames"] for row in found]
    assert frames == sorted(set(frames))
    assert frames[-1] == 600
    assert found[-1]["updates"] == 600 // 4 - 100 // 4
    assert RunFolder(run).read_status() == {"state": "finished", "frames": 600, "error": None}
    with pytest.raises(PserError, match="was started with another engine"):
        resume_run(run, Quiet(), extend_frames=100)
    resume_run(run, Quiet(), extend_frames=100, engine=direct)
    assert rows(run)[-1]["frames"] == 700
    assert main(["report", str(run), "--out", str(tmp_path / "report")]) == 0


def test_a_checkpoint_with_a_damaged_shard_is_skipped(tmp_path):
    direct = DirectEngine(ClusterSettings(actors=2, shards=2, chunk_steps=20))
    run, said = tmp_path / "run", []
    start_run(cartpole(num_envs=2), "x", run, Quiet(), engine=direct)
    newest = max((run / "checkpoints").iterdir())
    with open(newest / "memory-1.pser", "r+b") as file:
        file.truncate(1000)
    progress = Quiet()
    progress.said = said.append
    resume_run(run, progress, engine=direct, extend_frames=100)
    assert f"checkpoint {newest.name} is damaged and was skipped" in said[0]
    assert rows(run)[-1]["frames"] == 500


def test_without_ray_the_flags_say_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    run = str(tmp_path / "run")
    assert main(["train", "gym:CartPole-v1", "--engine", "ray", "--run-dir", run]) == 2
    assert "need ray, which is not installed: pip install 'pser[ray]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_ray_is_asked_to_be_quiet_before_it_is_imported(monkeypatch):
    for name in engine.QUIET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")  # whoever set it themselves keeps it
    asked = {}
    monkeypatch.setattr(engine, "need", lambda *_: asked.update(os.environ))
    engine.find_ray()
    wanted = engine.QUIET | {"RAY_USAGE_STATS_ENABLED": "1"}
    assert {name: asked[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--actors", "2"], "--actors is for Ray, got 2: add --engine ray"),
        (["--synchronous"], "--synchronous is for Ray"),
        (["--ray-address", "auto"], "--ray-address is for Ray, got 'auto'"),
        (["--engine", "ray", "--actors", "0"], "actors must be at least 1, got 0"),
        (["--engine", "ray", "--shards", "3"], "2 actors fill at most as many, got 3"),
        (["--engine", "ray", "--synchronous", "--actors", "2"], "means one actor and one shard, got 2 and 1"),
        (
            ["--engine", "ray", "--replay", "reaper", "--n-step", "1"],
            "carries out --replay pser, per, uniform",
        ),
        (["--engine", "ray", "--num-envs", "5"], "num_envs is actors · envs_per_actor, 2 · 3, got 5"),
        (["--engine", "ray", "--inspect-period-frames", "9"], "cannot be inspected while it trains"),
        (["--engine", "ray", "--samples-per-insert", "0"], "must be positive, got 0"),
        (
            ["--engine", "ray", "--samples-per-insert", "7"],
            r"whole number of steps, got 7.0: for instance 7.11",
        ),
        (["--engine", "ray", "--samples-per-insert", "8", "--update-period-steps", "8"], "say the same"),
        (
            [
                "--engine",
                "ray",
                "--capacity",
                "90",
                "--actors",
                "3",
                "--envs-per-actor",
                "6",
                "--shards",
                "2",
            ],
            r"a shard must hold 4 steps \(n_step \+ 1\) of each of its 12 environments, got 45",
        ),
        (
            ["--engine", "ray", "--replay", "per", "--variant", "rank", "--shards", "2"],
            "ranks are known within one shard only",
        ),
    ],
)
def test_flags_that_contradict_each_other_are_refused(flags, told):
    settings = train.parse(["gym:CartPole-v1", *flags])
    given = given_flags(settings, train.LEFT_OUT)
    with pytest.raises(PserError, match=told) as error:
        engine_of(settings, preset_settings("classic", "gym:CartPole-v1").override(given), given)
    assert "\n" not in str(error.value)


def test_an_engine_that_was_edited_is_refused(tmp_path):
    for plain in (3, {"name": "dask"}, {"name": "ray", "actors": 0}, {"name": "ray", "synchronous": "no"}):
        with pytest.raises(PserError):
            from_json(plain)


def test_resume_keeps_the_engine_of_the_run(tmp_path, capsys):
    assert main(["train", "--resume", str(tmp_path), "--engine", "ray", "--actors", "3"]) == 2
    assert "got --engine, --actors as well" in capsys.readouterr().err
