"""Every error that the library raises on purpose. The message says what was wrong, where, and what to do."""


class MinferError(Exception):
    """Base of all of them: `except MinferError` catches whatever the library refuses."""


class GgufError(MinferError):
    """A GGUF file that is damaged, truncated or not a GGUF file."""


class UnsupportedError(MinferError):
    """A format, architecture, tokenizer or feature that this engine does not run; the message names it."""


class PairingError(MinferError):
    """Weights of one format met activations of the wrong one."""


class ArgumentError(MinferError, ValueError):
    """A shape, dtype, length or token id that the called function cannot take."""


class ContextFullError(MinferError):
    """More tokens than the context holds."""


class ModelMissingError(MinferError):
    """A model file that is not on this machine yet."""
