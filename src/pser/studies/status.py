"""How far a study is."""

from collections.abc import Iterator

from pser.records.folder import RunFolder
from pser.studies.conduct import Place, read_records
from pser.studies.results import own_core_hours
from pser.studies.study import Study


def status_lines(study: Study, place: Place, seeds: int | None = None) -> Iterator[str]:
    """One line a game and arm, then what is under way, then the sum."""
    records = read_records(place.kept)
    planned = study.runs(records, seeds)
    counts: dict[tuple[str, str], list[int]] = {}
    for run in planned:
        count = counts.setdefault((run.game.env, run.arm.name), [0, 0])
        count[0] += run.path in records
        count[1] += 1
    width = max(len(f"{env} {arm}") for env, arm in counts)
    for (env, arm), (done, wanted) in counts.items():
        yield f"{f'{env} {arm}':<{width}}  {done} of {wanted}"
    for run in planned:
        status = RunFolder(place.folder(run)).read_status()
        if status and run.path not in records:
            yield f"{run.name}: {status['state']}, last saved at {status['frames']:,} frames"
    done = sum(run.path in records for run in planned)
    spent = own_core_hours(records.values())
    yield f"{done} of {len(planned)} runs so far, {spent:.1f} core-hours spent on what is kept"
