"""Where the wall time of a token goes: seed 1 §4, MINFER_TIMING."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = {  # a part of a token's time -> its steps of the forward pass (model/program.py); a model may lack some
    "matmul": ("qkv", "attn_output", "gate_up", "ffn_down", "logits"),  # gate_up: with SwiGLU
    "attention": ("bias", "head_norm", "rope", "attention"),
    "sampling": (),
    "rest": ("attn_norm", "attn_quantize", "ffn_norm", "act_quantize", "output_norm"),
}


@dataclass(frozen=True)
class Timing:
    """What a session has done so far, in seconds. `later - earlier` is what it did between the two.

    tokens: how many went through the model. steps: the passes by step, as the thread that called them saw it, waits for
    the other threads included. sampling: from logits to tokens. wall: all passes and all sampling, with Python's share.
    """

    tokens: int
    steps: dict[str, float]
    sampling: float
    wall: float

    def __sub__(self, earlier: Timing) -> Timing:
        steps = {step: seconds - earlier.steps[step] for step, seconds in self.steps.items()}
        return Timing(self.tokens - earlier.tokens, steps, self.sampling - earlier.sampling, self.wall - earlier.wall)

    def parts(self) -> dict[str, float]:
        """The wall time in PARTS. The rest is what is left: its steps, and the calls from Python."""
        parts = {part: sum(self.steps.get(step, 0.0) for step in steps) for part, steps in PARTS.items()}
        parts["sampling"] = self.sampling
        return parts | {"rest": self.wall - parts["matmul"] - parts["attention"] - parts["sampling"]}

    def report(self) -> str:
        """A table of the parts and their steps: milliseconds a token, and their share of the wall time."""
        if not self.tokens:
            return "  no tokens yet"

        def line(name: str, seconds: float) -> str:
            return f"  {name:18}{seconds / self.tokens * 1e3:9.3f} ms {seconds / self.wall:7.1%}"

        lines = []
        for part, seconds in self.parts().items():
            lines += [
                line(part, seconds),
                *(line(f"  {step}", self.steps[step]) for step in PARTS[part] if step in self.steps),
            ]
        return "\n".join(lines)
