"""The errors that whygrad raises on purpose: each carries one sentence for a person. The command line prints it."""


class WhygradError(Exception):
    """Something that the user can act on. Its text says what, where and what to do, in one sentence."""


class BadInput(WhygradError):  # noqa: N818  (it names the fault, as KeyboardInterrupt does)
    """A file or an argument that cannot be used as it is."""
