"""Where the wall time of a token goes: seed 1 §4, MINFER_TIMING."""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("matmul", "attention", "sampling", "rest")  # of time; an operation's own kind is written in its class


@dataclass(frozen=True)
class Timing:
    """What a session has done so far, in seconds. `later - earlier` is what it did between the two.

    tokens: how many went through the model. operations: name of an operation -> its seconds in all layers, as the
    thread that called saw them, waits for the other threads included. kinds: name -> its kind of KINDS. sampling: from
    logits to tokens. wall: all passes and all sampling, with Python's share.
    """

    tokens: int
    operations: dict[str, float]
    kinds: dict[str, str] = field(repr=False)
    sampling: float
    wall: float

    def __sub__(self, earlier: Timing) -> Timing:
        operations = {name: seconds - earlier.operations[name] for name, seconds in self.operations.items()}
        tokens, sampling = self.tokens - earlier.tokens, self.sampling - earlier.sampling
        return Timing(tokens, operations, self.kinds, sampling, self.wall - earlier.wall)

    def of_kind(self, kind: str) -> dict[str, float]:
        """The operations of one kind, in the order in which the model has them."""
        return {name: seconds for name, seconds in self.operations.items() if self.kinds[name] == kind}

    def shares(self) -> dict[str, float]:
        """The wall time by KINDS. The rest is what is left: its operations, and the calls from Python."""
        shares = {kind: sum(self.of_kind(kind).values()) for kind in KINDS}
        shares["sampling"] = self.sampling
        shares["rest"] = self.wall - sum(seconds for kind, seconds in shares.items() if kind != "rest")
        return shares

    def report(self) -> str:
        """A table of the kinds and their operations: milliseconds a token, and their share of the wall time."""
        if not self.tokens:
            return "  no tokens yet"

        def line(name: str, seconds: float) -> str:
            return f"  {name:22}{seconds / self.tokens * 1e3:9.3f} ms {seconds / self.wall:7.1%}"

        lines = []
        for kind, seconds in self.shares().items():
            lines += [line(kind, seconds), *(line(f"  {name}", s) for name, s in self.of_kind(kind).items())]
        return "\n".join(lines)
