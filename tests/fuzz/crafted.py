"""Files with right checksums and wrong numbers: taken apart, changed, and put together again."""

import json
import struct
import zlib

MAGIC, END = b"PSERSAV1", b"PSEREND1"
WHOLE_NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    15,
    16,
    17,
    64,
    255,
    1000,
    2**16,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**62,
    2**63 - 1,
]
HUGE = [2**63, -(2**63), 2**64, 2**100, -(2**70), 10**400]
OTHERS = [
    None,
    True,
    False,
    "",
    "x",
    "PSER",
    "<f4",
    "|O",
    "V8",
    [],
    [0],
    [[]],
    {},
    {"a": 1},
    0.5,
    -0.0,
    1e308,
    -1e308,
    1e-320,
]
NUMBERS = [float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e101, 1e-320, 3.0]


class Choices:
    """Numbers made from bytes, as long as they last: the same bytes, the same file."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def left(self) -> bool:
        """Is there more to choose by?"""
        return self._at < len(self._data)

    def below(self, limit: int) -> int:
        """From 0 to limit − 1."""
        part = self._data[self._at : self._at + 4]
        self._at += 4
        return int.from_bytes(part, "little") % max(limit, 1)

    def one(self, options):
        """One of these."""
        return options[self.below(len(options))]


class Parts:
    """A file taken apart."""

    def __init__(self, data: bytes) -> None:
        (length,) = struct.unpack_from("<Q", data, 8)
        self.header = json.loads(data[16 : 16 + length])
        self.arrays: list[bytearray] = []
        at = 16 + length + 4
        for _, size in self.header["arrays"]:
            self.arrays.append(bytearray(data[at : at + size]))
            at += size + 4

    def array(self, name: str) -> bytearray:
        """The bytes of an array."""
        return self.arrays[[each for each, _ in self.header["arrays"]].index(name)]

    def joined(self, *, encoded: bytes | None = None, fit_sizes: bool = False) -> bytes:
        """The file again, with right checksums; the header's sizes put right only if asked for."""
        if fit_sizes:
            names = [name for name, _ in self.header["arrays"]]
            self.header["arrays"] = [[n, len(a)] for n, a in zip(names, self.arrays, strict=False)]
        text = json.dumps(self.header).encode() if encoded is None else encoded
        start = MAGIC + struct.pack("<Q", len(text)) + text
        out = bytearray(start + struct.pack("<I", zlib.crc32(start)))
        for array in self.arrays:
            out += array + struct.pack("<I", zlib.crc32(array))
        return bytes(out + END)


def digest_of(data: bytes) -> int:
    """The checksum of a file's checksums, by which a head names a part; 0 if it has none."""
    try:
        (length,) = struct.unpack_from("<Q", data, 8)
        at = 16 + length
        digest = zlib.crc32(data[at : at + 4])
        for _, size in json.loads(data[16 : 16 + length])["arrays"]:
            at += 4 + size
            digest = zlib.crc32(data[at : at + 4], digest)
    except (TypeError, KeyError, ValueError, struct.error, RecursionError):
        return 0
    return digest


def mutated(seeds: list[bytes], choices: Choices) -> bytes:
    """One of the files with a few changes in its header and its arrays."""
    parts = Parts(choices.one(seeds))
    fit_sizes, encoded = False, None
    for _ in range(1 + choices.below(3)):
        how = choices.below(8)
        if how < 3:
            _change_header(parts.header, choices)
        elif how < 6:
            _change_array(choices.one(parts.arrays), choices)
        elif how == 6:
            fit_sizes |= _change_length(choices.one(parts.arrays), choices)
        else:
            encoded = _change_text(json.dumps(parts.header).encode(), choices)
    try:
        return parts.joined(encoded=encoded, fit_sizes=fit_sizes)
    except (TypeError, KeyError, ValueError):  # the list of arrays is no list any more
        return parts.joined(encoded=json.dumps(parts.header).encode())


def _change_header(header, choices: Choices) -> None:
    """Go down to some value and put another in its place."""
    value, key = (
        header,
        choices.one(["settings", "state", "state", "settings", "arrays", "content", "kind", "parts"]),
    )
    if key not in header:
        key = choices.one(list(header))
    while isinstance(value[key], dict | list) and len(value[key]) and choices.below(6):
        value = value[key]
        key = choices.one(list(value) if isinstance(value, dict) else range(len(value)))
    action = choices.below(8)
    if action == 0 and isinstance(value, dict):
        del value[key]
    elif action == 1 and type(value[key]) is int:
        value[key] += choices.one([-1, 1, 16, -16, 2**32])
    elif action == 2:
        value[key] = choices.one(OTHERS)
    elif action == 3:
        value[key] = choices.one(NUMBERS)
    elif action == 4:
        value[key] = choices.one(HUGE)
    else:
        value[key] = choices.one(WHOLE_NUMBERS)


def _change_array(array: bytearray, choices: Choices) -> None:
    """Put a telling number somewhere, or flip a bit."""
    if not array:
        return
    size = choices.one([1, 4, 8, 8])
    at = choices.below(len(array)) // size * size
    if choices.below(3) == 0:
        array[at] ^= 1 << choices.below(8)
    elif size == 8 and choices.below(2):
        array[at : at + 8] = struct.pack("<d", choices.one(NUMBERS))[: len(array) - at]
    else:
        number = choices.one(WHOLE_NUMBERS) % 2 ** (8 * size)
        array[at : at + size] = number.to_bytes(size, "little")[: len(array) - at]


def _change_length(array: bytearray, choices: Choices) -> bool:
    if choices.below(2):
        array += bytes(choices.one([1, 8, 192, 1000]))
    else:
        del array[len(array) - choices.one([1, 8, 192, 1000]) :]
    return bool(choices.below(3))


def _change_text(text: bytes, choices: Choices) -> bytes:
    """Text that is hardly JSON, or hard to read."""
    kind = choices.below(5)
    at = choices.below(len(text))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return b"[" * 100_000
    if kind == 2:
        return text.replace(b"0", b"1" * 5000, 1)
    if kind == 3:
        return text[:at] + b"\xff\x00" + text[at:]
    return text[:at] + bytes([choices.below(256)]) + text[at + 1 :]
