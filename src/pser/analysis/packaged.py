"""Files that come with the package: templates, scripts and styles of its pages."""

from functools import cache
from importlib.resources import files


@cache
def packaged(name: str) -> str:
    """The text of a file in `pser/data`, named by its path there."""
    return files("pser").joinpath("data", *name.split("/")).read_text(encoding="utf-8")
