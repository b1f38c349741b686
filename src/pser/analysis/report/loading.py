"""Read the folders that training left behind, forgiving what a crash leaves and saying what was forgiven."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pser.analysis.report.labels import agent_in
from pser.analysis.report.runs import Note, Row, Run, RunSet, is_finite
from pser.analysis.report.variants import note_duplicates, tell_variants_apart
from pser.errors import DamagedFileError, PserError, is_whole
from pser.files.json_text import parse_json
from pser.records.folder import RunFolder


def load_runs(paths: Sequence[Path]) -> RunSet:
    """Every run at or below `paths`; a path that does not exist, or no run at all, is an error."""
    notes: list[Note] = []
    folders = _find(paths, notes)
    names = _names(folders)
    runs = [run for folder in folders if (run := _load(folder, names[folder], notes)) is not None]
    if not runs:
        listed = ", ".join(str(path) for path in paths)
        raise PserError(
            f"a report needs at least one run; found none in {listed}: name folders that hold a manifest.json"
        )
    runs = tell_variants_apart(runs, notes)
    note_duplicates(runs, notes)
    return RunSet(tuple(sorted(runs, key=lambda run: (run.env, run.label, run.seed, run.name))), tuple(notes))


def _find(paths: Sequence[Path], notes: list[Note]) -> list[Path]:
    """Run folders (those with a manifest) in a stable order, each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise PserError(f"{path} does not exist: name a run folder or a folder of runs")
        root = path.parent if path.is_file() else path
        manifests = sorted(root.rglob("manifest.json"))
        for manifest in manifests:
            found.setdefault(manifest.parent.resolve(), manifest.parent)
        if not manifests:
            notes.append(Note("holds no run (no manifest.json in it or below): left out", str(path)))
        else:
            notes.extend(_stray_folders(root))
    return list(found.values())


def _stray_folders(root: Path) -> Iterable[Note]:
    """Folders that look like runs without being one: empty, or records without a manifest."""
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        if not any(folder.iterdir()):
            if not any((parent / "manifest.json").exists() for parent in folder.parents):
                yield Note("empty folder: left out", str(folder.relative_to(root)))
        elif (folder / "train.jsonl").exists() and not (folder / "manifest.json").exists():
            yield Note("records without a manifest.json: left out", str(folder.relative_to(root)))


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Each folder's path without the part all share."""
    parts = {folder: folder.resolve().parts for folder in folders}
    shared = 0
    if len(folders) > 1:
        columns = zip(*parts.values(), strict=False)
        for column in columns:
            if len(set(column)) > 1:
                break
            shared += 1
    else:
        shared = max((len(p) - 1 for p in parts.values()), default=0)
    return {folder: "/".join(p[shared:]) or p[-1] for folder, p in parts.items()}


def _load(folder: Path, name: str, notes: list[Note]) -> Run | None:
    files = RunFolder(folder)
    manifest = _read_object(files.manifest, name, notes)
    if manifest is None:
        return None
    missing = [key for key in ("env", "replay", "label", "seed") if key not in manifest]
    if missing:
        notes.append(Note(f"manifest.json lacks {', '.join(missing)}: left out", name))
        return None
    wrong = [key for key in ("env", "replay", "label") if not isinstance(manifest[key], str)]
    wrong += [] if is_whole(manifest["seed"]) else ["seed"]
    wrong += [key for key in ("settings", "machine", "versions") if not _is_object(manifest.get(key))]
    if wrong:
        notes.append(Note(f"manifest.json holds no usable {', '.join(wrong)}: left out", name))
        return None
    status = _read_object(files.status, name, notes) if files.status.exists() else None
    run = Run(
        name=name,
        path=folder,
        env=str(manifest["env"]),
        replay=str(manifest["replay"]),
        label=str(manifest["label"]),
        agent=str(manifest.get("agent") or agent_in(str(manifest["label"]))),
        seed=int(manifest["seed"]),
        preset=str(manifest.get("preset", "")),
        manifest=manifest,
        state=str((status or {}).get("state", "unknown")),
        error=None if (error := (status or {}).get("error")) is None else str(error),
        train=_read_rows(files.train, name, notes),
        evaluations=_read_rows(files.evaluations, name, notes),
        final=_read_final(files.final, name, notes) if files.final.exists() else None,
    )
    _note_state(run, notes)
    return run


def _note_state(run: Run, notes: list[Note]) -> None:
    if run.state == "failed":
        notes.append(Note(f"failed at {run.frames:,} frames ({run.error or 'no message'})", run.name))
    elif run.state == "running":
        notes.append(Note(f"not finished: {run.frames:,} frames so far", run.name))
    elif run.state == "unknown":
        notes.append(Note("no status.json: nobody knows whether it is finished", run.name))
    if not run.train and not run.evaluations:
        notes.append(Note("no records yet: in no curve and no score", run.name))


def _is_object(value: object) -> bool:
    """Is it a JSON object, or nothing at all?"""
    return value is None or isinstance(value, dict)


def _read_final(path: Path, name: str, notes: list[Note]) -> Row | None:
    """A re-evaluation of which mean, episodes and snapshot are numbers."""
    final = _read_object(path, name, notes)
    if final is None:
        return None
    wrong = [] if is_finite(final.get("mean_return")) else ["mean_return"]
    wrong += [key for key in ("episodes", "snapshot_frames") if not is_whole(final.get(key))]
    if wrong:
        notes.append(Note(f"{path.name} holds no usable {', '.join(wrong)}: ignored", name))
        return None
    return final


def _read_object(path: Path, name: str, notes: list[Note]) -> Row | None:
    try:
        document = parse_json(path.read_bytes())
    except (DamagedFileError, OSError):
        notes.append(Note(f"{path.name} is not readable JSON: ignored", name))
        return None
    if not isinstance(document, dict):
        notes.append(Note(f"{path.name} is not a JSON object: ignored", name))
        return None
    return document


def _read_rows(path: Path, name: str, notes: list[Note]) -> tuple[Row, ...]:
    """The whole lines of a record file, in order of frames, the last of those with the same frames."""
    if not path.exists():
        return ()
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        notes.append(Note(f"{path.name} cannot be read: ignored", name))
        return ()
    by_frames: dict[int, Row] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _parse(line)
        if row is None:
            half = number == len(lines)  # a whole line ends with a newline, so something follows it
            what = "last line is half-written" if half else f"line {number} is not readable"
            notes.append(Note(f"{path.name}: {what}: ignored", name))
            continue
        by_frames[row["frames"]] = row
    return tuple(by_frames[frames] for frames in sorted(by_frames))


def _parse(line: bytes) -> Row | None:
    try:
        row = parse_json(line)
    except DamagedFileError:
        return None
    if not isinstance(row, dict) or not is_whole(row.get("frames")) or not is_finite(row["frames"]):
        return None
    return row
