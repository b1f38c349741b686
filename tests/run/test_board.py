"""How many runs stand, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from pser.run.board import Board
from pser.run.job import Job


@pytest.fixture
def clock(monkeypatch):
    """The time, set by the test."""
    now = [0.0]
    monkeypatch.setattr("pser.run.board.time.monotonic", lambda: now[0])
    return now


def jobs_in(folder, count, budget=1000):
    return [
        Job(
            f"run-{i:03d}",
            folder / f"run-{i:03d}",
            {"run": {"budget_frames": budget}},
            "classic",
            "pser sweep",
        )
        for i in range(count)
    ]


def play(job, frames):
    """Let a run have played so many frames."""
    job.folder.mkdir(exist_ok=True)
    (job.folder / "train.jsonl").write_text(f'{{"frames": {frames}}}\n')


def console(height=24, width=80):
    return Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)


def lines_of(board, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(board.panel())
    return out.getvalue().splitlines()


@pytest.mark.parametrize("height", [12, 24, 50])
@pytest.mark.parametrize("width", [60, 80])
def test_of_many_runs_those_under_way_are_on_the_screen(tmp_path, height, width):
    jobs = jobs_in(tmp_path, 171)
    board = Board(jobs, jobs[:30], console=console(height, width))
    board.move(jobs[100], "running")
    board.move(jobs[7], "failed")
    lines = lines_of(board, width)
    assert len(lines) < height - 1  # it fits, and leaves the line of the cursor
    assert "30/171 runs" in lines[0]
    at = {
        name: number for number, line in enumerate(lines) for name in ("run-100", "run-007") if name in line
    }
    assert at["run-007"] < at["run-100"] < 7
    assert sum("run-" in line for line in lines) == height - 8
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith("waiting, 29 finished")


def test_few_runs_are_all_there_with_what_they_reached(tmp_path):
    jobs = jobs_in(tmp_path, 3)
    play(jobs[1], 400)
    (jobs[1].folder / "eval.jsonl").write_text('{"frames": 300, "mean_return": 2.5}\n')
    board = Board(jobs, jobs[:1], where=lambda job: "here", console=console())
    board.move(jobs[1], "running")
    lines = lines_of(board)
    (row,) = [line for line in lines if "run-001" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "run-001",
        "running",
        "here",
        "400",
        "2.50",
    ]
    assert sum("run-" in line for line in lines) == 3
    assert not any("and " in line for line in lines)


def test_the_time_left_is_that_of_the_frames_left_at_the_pace_so_far(tmp_path, clock):
    jobs = jobs_in(tmp_path, 4)
    play(jobs[1], 500)  # by an earlier command
    board = Board(jobs, jobs[:1], console=console())
    assert board.seconds_left() is None
    board.move(jobs[1], "running")
    play(jobs[1], 750)
    clock[0] = 100.0
    assert board.seconds_left() == pytest.approx(100.0 * 2250 / 250)
    assert "0:01:40 elapsed, 0:15:00 left" in lines_of(board)[0]
    board.move(jobs[1], "finished")
    board.move(jobs[2], "failed")  # nothing more is played of it
    clock[0] = 150.0
    assert board.seconds_left() == pytest.approx(150.0 * 1000 / 1500)
    board.move(jobs[3], "finished")
    assert board.seconds_left() is None


def test_elsewhere_a_line_a_run_tells_the_time_left(tmp_path, clock, capsys):
    jobs = jobs_in(tmp_path, 3)
    with Board(jobs) as board:
        clock[0] = 60.0
        board.move(jobs[0], "finished")
        board.tell(jobs[0], "finished")
        board.move(jobs[1], "failed")
        board.move(jobs[2], "finished")
        board.tell(jobs[2], "finished")
    assert capsys.readouterr().out == "[1/3] run-000: finished, about 0:02:00 left\n[3/3] run-002: finished\n"


def test_on_a_terminal_lines_stand_above_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("pser.run.screen.FIRST_SECONDS", 0.0)
    jobs = jobs_in(tmp_path, 2)
    terminal = console()
    with Board(jobs, console=terminal) as board:
        board.move(jobs[0], "finished")
        board.tell(jobs[0], "finished")
    written = terminal.file.getvalue()
    assert "[1/2] run-000: finished" in written
    assert written.rindex("1/2 runs") > written.rindex("[1/2] run-000")
