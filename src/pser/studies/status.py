"""How far a study is, and about what is still to come."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from pser.records.folder import RunFolder
from pser.studies.conduct import Place, likeness, likeness_of, read_records
from pser.studies.notes import changed_settings
from pser.studies.record import Record
from pser.studies.report import short_name
from pser.studies.results import own_core_hours
from pser.studies.study import Planned, Study


def status_lines(study: Study, place: Place, seeds: int | None = None) -> Iterator[str]:
    """Arms down, games across: runs finished of those planned; then what is under way, then the sum."""
    records = read_records(place.kept)
    planned = study.runs(records, seeds)
    yield from _grid(planned, records)
    for run in planned:
        status = RunFolder(place.folder(run)).read_status()
        if status and run.path not in records:
            yield f"{run.name}: {status['state']}, last saved at {status['frames']:,} frames"
    missing = [run for run in planned if run.path not in records]
    spent = own_core_hours(records.values())
    left = hours_left(study, missing, records)
    to_go = f", at most about {left:.1f} to go" if left else ""
    done = len(planned) - len(missing)
    yield f"{done} of {len(planned)} runs so far, {spent:.1f} core-hours spent on what is kept{to_go}"
    if told := changed_settings(study, records.values()):
        yield f"note: {told}"


def overview_lines(studies: Sequence[tuple[Study, Place]]) -> Iterator[str]:
    """A line a study: runs finished of those planned, core-hours spent, and at most about how many to go.

    Runs that another study has made, or is to make before, cost nothing. Studies that are run only if something comes
    to pass are in the sum once they have begun.
    """
    kept = {study.name: read_records(place.kept) for study, place in studies}
    made = {
        (path.partition("/")[0], likeness_of(record))
        for records in kept.values()
        for path, record in records.items()
    }
    width = max(len(name) for name in kept)
    yield f"{'':<{width}}  {'runs':>9}  core-hours  to go"
    whole_spent = whole_left = 0.0
    for study, _ in studies:
        records, missing = kept[study.name], []
        planned = study.runs(records)
        absent = [run for run in planned if run.path not in records]
        for run in absent:
            key = run.game.folder, likeness(study, run)
            if key not in made:
                missing.append(run)
                made.add(key)
        spent, known = own_core_hours(records.values()), hours_left(study, missing, records)
        left = study.core_hours * len(missing) / len(planned) if known is None else known
        waits = bool(study.only_if) and not records
        whole_spent, whole_left = whole_spent + spent, whole_left + (0.0 if waits else left)
        runs = f"{len(planned) - len(absent)}/{len(planned)}"
        to_go = f"{left:5.1f}" if absent else "    –"
        condition = f"  only if {study.only_if}" if waits else ""
        yield f"{study.name:<{width}}  {runs:>9}  {spent:10.1f}  {to_go}{condition}"
    yield f"{'':<{width}}  {'':>9}  {whole_spent:10.1f}  {whole_left:5.1f}"


def _grid(planned: Sequence[Planned], records: Mapping[str, Record]) -> Iterator[str]:
    games = list(dict.fromkeys(short_name(run.game.env) for run in planned))
    arms = list(dict.fromkeys(run.arm.name for run in planned))
    counts = {(game, arm): [0, 0] for game in games for arm in arms}
    for run in planned:
        count = counts[short_name(run.game.env), run.arm.name]
        count[0] += run.path in records
        count[1] += 1
    first = max(len(arm) for arm in arms)
    yield f"{'':<{first}}" + "".join(f"  {game}" for game in games)
    for arm in arms:
        row = "".join(f"  {_count(*counts[game, arm]):>{len(game)}}" for game in games)
        yield f"{arm:<{first}}{row}"


def _count(done: int, wanted: int) -> str:
    return f"{done}/{wanted}" if wanted else "-"


def hours_left(study: Study, missing: Sequence[Planned], records: Mapping[str, Record]) -> float | None:
    """Core-hours of the missing runs, by the median cost of a frame on the same game (or, without one, on any).

    None without a record that tells its cost. Runs that can be taken over from another study cost nothing.
    """
    costs: dict[str, list[float]] = {}
    for record in records.values():
        if record.cpu_seconds:
            costs.setdefault(record.env.casefold(), []).append(record.cpu_seconds / record.final["frames"])
    if not costs:
        return None
    anywhere = median(cost for game in costs.values() for cost in game)
    seconds = 0.0
    for run in missing:
        known = costs.get(run.game.env.casefold())
        seconds += study.budget_frames(run.game) * (median(known) if known else anywhere)
    return seconds / 3600
