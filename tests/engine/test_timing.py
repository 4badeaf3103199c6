"""Where the time goes: the counters count the right thing, and the parts are the whole. No time has a limit here."""

import time

import pytest
from minfer_lib.model.program import STEPS

import minfer_lib as mf
from minfer_lib.engine.timing import PARTS, Timing

STEP_OF = {  # a stage that can be watched -> the step that has just ended
    "attn_norm": "attn_norm", "q": "qkv", "q_bias": "bias", "q_norm": "head_norm", "q_rope": "rope",
    "heads": "attention", "attn_output": "attn_output",
    "ffn_norm": "ffn_norm", "gate": "gate_up", "ffn_down": "ffn_down", "output_norm": "output_norm", "logits": "logits",
}  # fmt: skip
UNSEEN = {"attn_output": "attn_quantize", "ffn_down": "act_quantize"}  # steps before it that leave no stage


@pytest.mark.parametrize("threads", [1, 3])
def test_each_step_is_counted_under_its_own_name(tiny, threads):
    """Between two stages no counter moves but that of the step between them: whatever the machine does meanwhile."""
    path = tiny(format="Q8_0", architecture="qwen3", qkv_bias=True)  # a model that has every step
    session = mf.load_model(path, threads=threads).session()
    seen = []

    def watch(name, _):
        stage = name.rpartition(".")[2]
        now = session.timing.steps
        if stage in STEP_OF:
            moved = {step for step in STEPS if now[step] != watch.before[step]}
            assert moved == {STEP_OF[stage], *({UNSEEN[stage]} if stage in UNSEEN else ())}, stage
            seen.append(stage)
        watch.before = now

    watch.before = session.timing.steps
    assert list(watch.before.values()) == [0.0] * len(STEPS)
    session.feed([1, 2, 3], watch)
    assert set(seen) == set(STEP_OF)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_steps_fit_into_the_wall_time_and_the_parts_are_all_of_it(tiny, threads):
    session = mf.load_model(tiny(format="Q4_1"), threads=threads).session()
    start = time.perf_counter()
    list(session.generate([1, 2, 3], max_tokens=5, sampler=lambda logits, ids: time.sleep(0.02) or 7))
    elapsed, timing = time.perf_counter() - start, session.timing
    assert timing.tokens == 3 + 4
    assert 0.1 <= timing.sampling < timing.wall <= elapsed, "five naps of 20 ms"
    assert 0 < min(timing.steps.values()) and sum(timing.steps.values()) <= timing.wall - timing.sampling
    parts = timing.parts()
    assert list(parts) == list(PARTS) and min(parts.values()) > 0
    assert sum(parts.values()) == pytest.approx(timing.wall)


def test_every_step_is_in_one_part():
    assert sorted(step for steps in PARTS.values() for step in steps) == sorted(STEPS)


def test_a_difference_is_what_came_between(tiny):
    session = mf.load_model(tiny()).session()
    session.feed([1, 2])
    before = session.timing
    session.log_probabilities([3, 4, 5])
    after = session.timing
    between = after - before
    assert between.tokens == 3 and 0 < between.wall < after.wall and between.sampling == 0
    assert set(STEPS) - set(after.steps) == {"bias", "head_norm"}, "a llama has no such steps"
    assert all(0 < between.steps[step] < after.steps[step] for step in after.steps)


def test_before_the_first_token_there_is_nothing_to_report(tiny):
    timing = mf.load_model(tiny()).session().timing
    assert timing.report() == "  no tokens yet" and sum(timing.parts().values()) == 0


def test_a_report_has_milliseconds_a_token_and_shares():
    steps = dict.fromkeys(STEPS, 0.0) | {"gate_up": 0.004, "logits": 0.002, "attention": 0.001}
    lines = Timing(tokens=2, steps=steps, sampling=0.0005, wall=0.01).report().splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["matmul"] == ["3.000", "ms", "60.0%"] and rows["attention"] == ["0.500", "ms", "10.0%"]
    assert rows["sampling"] == ["0.250", "ms", "5.0%"] and rows["rest"] == ["1.250", "ms", "25.0%"]
