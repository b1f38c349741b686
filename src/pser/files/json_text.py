"""JSON that may come from anywhere: whatever is wrong with it is one kind of error."""

import json
from typing import Any

from pser.errors import DamagedFileError


def parse_json(text: str | bytes) -> Any:
    """The value that `text` holds; a DamagedFileError also for nesting and numbers beyond what Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise DamagedFileError("this JSON is nested too deeply to be read: repair the file") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        reason = str(error).partition(";")[0]
        raise DamagedFileError(f"this is not readable JSON ({reason}): repair the file") from None
