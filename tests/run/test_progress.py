"""What a person sees."""

import io

import pytest
from rich.console import Console

from pser.run import panel, progress
from pser.run.panel import LiveProgress, Speed
from pser.run.progress import PlainProgress, evaluation_line, make_progress
from pser.run.screen import Screen

ROW = {
    "frames": 500,
    "updates": 3,
    "episodes": 7,
    "return_mean": 1.25,
    "epsilon": 0.1,
    "loss": None,
    "q_mean": 2.0,
    "td_abs_mean": 0.5,
    "frames_per_second": 100.0,
    "memory": {"effective_sample_size": 400.0},
}
EVALUATION = {"frames": 500, "mean_return": 3.5, "std_return": 1.0, "episodes": 9, "best": True}


@pytest.fixture
def terminal():
    """A console that believes to be a terminal, and what was written to it."""
    out = io.StringIO()
    return Console(file=out, width=80, height=30, force_terminal=True, color_system=None)


@pytest.fixture
def live(terminal, monkeypatch):
    """A panel that draws only when it is asked to."""
    monkeypatch.setattr("pser.run.screen.FIRST_SECONDS", 3600.0)
    shown = LiveProgress("title", 1000, terminal)
    yield shown
    shown.close()


def text_of(shown):
    out = io.StringIO()
    Console(file=out, width=80).print(shown.panel())
    return out.getvalue()


def shown_by(written):
    """What a terminal shows after this was written: rows, the cursor going up and erasing."""
    rows = [""]
    for part in written.replace("\r", "").split("\x1b["):
        if part[:1].isdigit() and "A" in part:
            count, _, part = part.partition("A")
            rows = rows[: len(rows) - int(count)]
            rows[-1:] = [""]
        part = part.removeprefix("J")
        first, *rest = part.split("\n")
        rows[-1] += first
        rows += rest
    return rows


def test_plain_lines_say_frames_speed_and_time_left_once_it_is_known(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_PERIOD_SECONDS", 0.0)
    shown = PlainProgress(1000)
    shown.logged(ROW | {"updates": 0})
    shown.logged(ROW)
    shown.logged(ROW)
    shown.evaluated(EVALUATION)
    warmup, first, second, evaluation = capsys.readouterr().out.splitlines()
    assert "left -" in warmup
    assert "left -" in first  # half of it was warm-up
    for words in ("frames 500/1,000", "frames/s 100", "left 0:00:05", "return 1.25", "loss -"):
        assert words in second
    assert evaluation == "evaluation at 500 frames: mean return 3.50 ± 1.00 over 9 episodes, the best so far"


def test_plain_lines_come_not_too_often_and_the_last_one_always(capsys):
    shown = PlainProgress(500)
    shown.logged(ROW | {"frames": 300})
    shown.logged(ROW | {"frames": 400})  # too soon for another line
    shown.logged(ROW)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_panel_shows_the_same_numbers(live):
    live.watch(lambda: 500, warmup_frames=100, budget_frames=1000)
    live.logged(ROW)
    live.evaluated(EVALUATION)
    for words in ("title", "500/1,000", "return 1.25", "mean return 3.50", "training"):
        assert words in text_of(live)


def test_before_the_run_begins_the_panel_says_so(live):
    assert "starting" in text_of(live)


def test_the_panel_moves_without_any_report(live):
    frames = iter(range(10))
    live.watch(lambda: next(frames), warmup_frames=0, budget_frames=1000)
    assert "0/1,000" in text_of(live)
    assert "1/1,000" in text_of(live)


def test_warm_up_has_a_bar_of_its_own(live):
    live.watch(lambda: 30, warmup_frames=100, budget_frames=1000)
    assert "warm-up" in text_of(live)
    assert "30/100 frames" in text_of(live)
    assert "time left not known yet" in text_of(live)


def test_an_evaluation_has_a_bar_of_its_own_until_it_is_over(live):
    live.watch(lambda: 500, warmup_frames=0, budget_frames=1000)
    with live.busy("evaluating", 30, "episodes") as busy:
        busy.done = 12
        assert "evaluating" in text_of(live)
        assert "12/30 episodes" in text_of(live)
    assert "evaluating" not in text_of(live)


def test_the_speed_of_the_warm_up_says_nothing_about_the_time_left():
    speed = Speed()
    assert speed.measured(0.0, 0, learning=False) is None
    assert speed.measured(100.0, 50_000, learning=False) is None
    assert speed.measured(101.0, 50_010, learning=True) is None
    assert speed.measured(102.0, 50_020, learning=True) is None  # too soon
    assert speed.measured(111.0, 50_110, learning=True) == 10.0


def test_the_time_left_is_shown_once_it_is_known(live, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(panel.time, "monotonic", lambda: now[0])
    live.watch(lambda: 100 + int(now[0]) * 10, warmup_frames=100, budget_frames=1000)
    assert "time left not known yet" in text_of(live)
    now[0] = 30.0
    assert "0:01:00 left" in text_of(live)


def test_finished_stands_below_the_panel(live, terminal):
    live.watch(lambda: 1000, warmup_frames=0, budget_frames=1000)
    live._screen.draw()
    live.ended("finished: 1,000 frames")
    rows = [row for row in shown_by(terminal.file.getvalue()) if row]
    assert rows[-1] == "finished: 1,000 frames"
    assert rows[-2].startswith("╰")
    assert sum("title" in row for row in rows) == 1
    assert "not known" not in "".join(rows)


def test_a_run_that_never_began_leaves_its_message_alone(live, terminal):
    live._screen.draw()
    live.ended("runs/a is finished")
    assert [row for row in shown_by(terminal.file.getvalue()) if row] == ["runs/a is finished"]


def test_one_episode_is_shown_without_a_spread():
    assert evaluation_line(EVALUATION) == (
        "evaluation at 500 frames: mean return 3.50 ± 1.00 over 9 episodes, the best so far"
    )
    alone = EVALUATION | {"episodes": 1, "std_return": 0.0}
    assert evaluation_line(alone) == "evaluation at 500 frames: return 3.50 of one episode, the best so far"


def test_a_message_stands_above_the_panel_as_it_was_written(live, terminal):
    live._screen.draw()
    live.said("a [bold]message")
    rows = [row for row in shown_by(terminal.file.getvalue()) if row]
    assert rows[0] == "a [bold]message"
    assert "title" in rows[1]
    assert sum("title" in row for row in rows) == 1


def test_a_run_that_is_refused_leaves_no_panel(live, terminal):
    live._screen.draw()
    live.close()
    assert "".join(shown_by(terminal.file.getvalue())) == ""


@pytest.mark.parametrize("narrow", [79, 50, 33])
def test_a_terminal_made_narrower_keeps_no_fragments(narrow, terminal):
    screen = Screen(terminal, lambda: "x" * 60 + "\n" + "y" * 10)
    screen.draw()
    before = len(terminal.file.getvalue())
    terminal.width = narrow
    screen.draw()
    rows = (60 + narrow - 1) // narrow + 1  # as the terminal has folded them
    assert terminal.file.getvalue()[before:].startswith(f"\r\x1b[{rows}A\x1b[J")


def test_what_does_not_fit_is_not_drawn(terminal):
    terminal.height = 3
    Screen(terminal, lambda: "1\n2\n3\n4").draw()
    assert terminal.file.getvalue() == ""


def test_pipes_get_plain_lines(monkeypatch):
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: False, raising=False)
    assert isinstance(make_progress("title", 10), PlainProgress)
