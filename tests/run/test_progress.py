"""What a person sees."""

import io

import rich.console
from rich.console import Console

from pser.run import progress
from pser.run.progress import LiveProgress, PlainProgress, make_progress

ROW = {
    "frames": 500,
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


def test_plain_lines_say_frames_speed_and_time_left(capsys):
    shown = PlainProgress(1000)
    shown.logged(ROW)
    shown.logged(ROW)  # too soon for another line
    shown.evaluated(EVALUATION)
    first, second = capsys.readouterr().out.splitlines()
    for words in ("frames 500/1,000", "frames/s 100", "left 0:00:05", "return 1.25", "loss -"):
        assert words in first
    assert second == "evaluation at 500 frames: mean return 3.50 ± 1.00 over 9 episodes, the best so far"


def test_the_last_row_is_always_printed(capsys):
    shown = PlainProgress(500)
    shown.logged(ROW)
    shown.logged(ROW)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_live_panel_shows_the_same_numbers():
    shown = LiveProgress("title", 1000)
    shown.logged(ROW)
    shown.evaluated(EVALUATION)
    shown.close()
    out = io.StringIO()
    Console(file=out, width=110).print(shown._panel())
    for words in ("title", "500/1,000", "0:00:05", "mean return 3.50"):
        assert words in out.getvalue()


def test_the_live_panel_says_what_takes_so_long_until_it_is_over():
    shown = LiveProgress("title", 1000)
    shown.busy("evaluating")
    assert shown._busy == "evaluating …"
    shown.evaluated(EVALUATION)
    assert shown._busy == ""
    shown.close()


def test_a_message_leaves_the_panel_as_it_was(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(rich.console, "Console", lambda: Console(file=out, width=110, force_terminal=True))
    shown = LiveProgress("title", 1000)
    shown.logged(ROW)
    shown.said("a [bold]message")
    shown.close()
    assert "a [bold]message" in out.getvalue()
    assert "[dim]" not in out.getvalue()


def test_a_run_that_is_refused_at_once_shows_no_panel(capsys):
    LiveProgress("title", 1000).close()
    assert capsys.readouterr().out == ""


def test_pipes_get_plain_lines(monkeypatch):
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: False, raising=False)
    assert isinstance(make_progress("title", 10), PlainProgress)
