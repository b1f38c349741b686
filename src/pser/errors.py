"""The errors a user can cause: each message gives the rule, the value and the remedy."""


class PserError(ValueError):
    """A rule of the library was broken by its input; nothing was changed."""


class DamagedFileError(PserError):
    """A saved file is incomplete or altered; nothing was loaded from it."""
