"""What to keep in mind when reading a study: how its runs were made, and where they are not what they seem."""

from collections.abc import Collection, Iterable, Mapping

from pser.studies.record import Record
from pser.studies.study import Study


def notes_of(study: Study, own: Mapping[str, Record], all_of: Mapping[str, Record]) -> list[str]:
    """What the records of a study (`own`, of all that lie in its folder) may mislead about."""
    notes = list(study.remarks)
    if len(own) < len(all_of):
        notes.append(f"{len(all_of) - len(own)} records are of arms or games that are not declared: left out")
    if told := _made_differently(study, own.values()):
        notes.append(told)
    if any((record.commit or "").endswith("-dirty") for record in own.values()):
        notes.append("some runs were made with a program that had changes not committed")
    origins = sorted({record.shared_from for record in own.values() if record.shared_from})
    if origins:
        shared = sum(record.shared_from is not None for record in own.values())
        notes.append(
            f"{shared} runs with the same settings were made for {', '.join(f'`{name}`' for name in origins)}, and "
            "their cost is counted there"
        )
    if told := changed_settings(study, own.values()):
        notes.append(told)
    if added := len(own.keys() - {run.path for run in study.runs(all_of)}):
        notes.append(
            f"{_runs(added)} more than are declared, and the tests count them: a study that is prolonged until it "
            "shows something shows too much"
        )
    notes += [note for pair in _compared(study) if (note := _same_runs(*pair, own.values()))]
    return notes


def changed_settings(study: Study, records: Iterable[Record]) -> str:
    """How many runs had other settings than are declared now, and which; empty if none."""
    own = [record for record in records if study.declares(record.env, record.arm)]
    differences = [found for record in own if (found := _differences(study, record))]
    if not differences:
        return ""
    named = sorted({difference for found in differences for difference in found})
    return f"{_runs(len(differences))} had other settings than are declared now: {', '.join(named)}"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _compared(study: Study) -> list[tuple[str, str]]:
    """All pairs of arms that the study compares."""
    return [pair for contrast in study.contrasts for pair in contrast.compared]


LEARNED = ("return_count", "return_mean", "loss", "q_mean")
"""Columns of a record that are equal in two runs only if these learned the same."""


def _made_differently(study: Study, records: Collection[Record]) -> str:
    """Which versions and processors made the runs, and how many comparisons that touches; empty if it was one."""
    versions = sorted({_version(record) for record in records})
    processors = sorted({_processor(record) for record in records})
    if len(versions) < 2 and len(processors) < 2:
        return ""
    told = [
        f"{what} ({', '.join(names)})"
        for what, names in (
            (f"{len(versions)} versions of the program", versions),
            (f"{len(processors)} kinds of processor", processors),
        )
        if len(names) > 1
    ]
    pairs = [pair for arms in _compared(study) for pair in _pairs(*arms, records)]
    apart = sum(_version(x) != _version(y) or _processor(x) != _processor(y) for x, y in pairs)
    of_pairs = f"; {apart} of {len(pairs)} pairs of runs that are compared, with the same game and seed, differ in that"
    return f"the runs were made with {' on '.join(told)}{of_pairs if pairs else ''}"


def _version(record: Record) -> str:
    return (record.commit or "unknown")[:10]


def _processor(record: Record) -> str:
    return str(record.machine.get("processor", "unknown"))


def _pairs(arm: str, against: str, records: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Runs of the two arms with the same game and seed."""
    sides: dict[str, dict[tuple[str, int], Record]] = {arm: {}, against: {}}
    for record in records:
        if record.arm in sides:
            sides[record.arm][record.env.casefold(), record.seed] = record
    ours, theirs = sides[arm], sides[against]
    return [(ours[key], theirs[key]) for key in ours if key in theirs]


def _same_runs(arm: str, against: str, records: Iterable[Record]) -> str:
    """Whether runs of two arms with the same seed are one and the same: then what sets the arms apart did nothing."""
    pairs = _pairs(arm, against, records)
    same = sum(all(x.train.get(name) == y.train.get(name) for name in LEARNED) for x, y in pairs)
    if not same:
        return ""
    return (
        f"{same} of {len(pairs)} runs of `{arm}` learned step for step what the run of `{against}` with the same seed "
        "did: what sets the two apart changed nothing there"
    )


def _differences(study: Study, record: Record) -> list[str]:
    """Settings of a record that differ from those declared; new settings, unknown when it was made, do not count."""
    from pser.learner.settings_json import to_json
    from pser.records.nesting import flatten
    from pser.studies.study import Planned

    game = study.game_of(record.env)
    assert game is not None
    arm = next(arm for arm in study.arms if arm.name == record.arm)
    declared = flatten(to_json(study.settings_of(Planned(game, arm, record.seed))))
    made = flatten(record.settings)
    return [
        f"{key.rpartition('.')[2]} of {arm.name} was {made[key]}, now {value}"
        for key, value in declared.items()
        if key in made and made[key] != value and key != "game.env"
    ]
