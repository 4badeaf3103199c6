"""The measurements measure what they say; how fast this machine is, no test asks."""

from types import SimpleNamespace

import numpy as np
import pytest

import minfer_lib as mf
from minfer_lib.bench import speed
from minfer_lib.native.pool import job_address, pool


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_probe_reads_every_word_once(count, threads):
    """xor is its own inverse: a word that is read twice or not at all would change the result."""
    words = np.random.default_rng(count).integers(-(2**62), 2**62, count)
    argument = np.zeros(2 + threads, np.int64)
    argument[:2] = words.ctypes.data, words.size
    pool().run(job_address(speed._read_words), argument.ctypes.data, threads)
    assert np.bitwise_xor.reduce(argument[2:]) == np.bitwise_xor.reduce(words)


def test_the_ceiling_is_bytes_over_seconds(monkeypatch):
    probe = speed.CeilingProbe(1_000_000)
    clock = iter([10.0, 10.5])
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))
    assert probe.gigabytes_per_second(1) == pytest.approx(0.002 * speed.PASSES)


def test_a_token_reads_every_matrix_once_and_the_tied_one_as_output(tiny):
    layer = 64 * 64 * 2 + 32 * 64 * 2 + 3 * 96 * 64  # q and output, k and v, three of the feed-forward
    for path, bits in ((tiny(format="Q8_0"), 8.5), (tiny(format="Q4_0", tied=True), 4.5), (tiny(format="F16"), 16)):
        assert speed.bytes_per_token(mf.load_model(path)) == (2 * layer + 265 * 64) * bits / 8


def test_decode_speed_is_a_median_of_rounds_in_turn(tiny, monkeypatch):
    calls, tokens, ceilings = [], iter([5.0, 100.0, 7.0]), iter([3.0, 1.0, 2.0])
    model = mf.load_model(tiny(format="Q8_0"), threads=2)

    class Probe:
        def gigabytes_per_second(self, threads):
            calls.append(threads)
            return next(ceilings)

    monkeypatch.setattr(speed, "decode_tokens_per_second", lambda *_: calls.append("decode") or next(tokens))
    found = speed.decode_speed(model, 4, rounds=3, probe=Probe())
    assert calls == [2, "decode"] * 3
    assert (found.threads, found.tokens_per_second, found.ceiling_gigabytes_per_second) == (2, 7.0, 2.0)
    assert found.gigabytes_per_second == pytest.approx(7 * speed.bytes_per_token(model) / 1e9)
    assert found.share_of_ceiling == pytest.approx(found.gigabytes_per_second / 2)
    assert found.as_dict()["share_of_ceiling"] == found.share_of_ceiling


@pytest.mark.parametrize("context", [1, 2, 64])
def test_decode_stays_inside_the_context(tiny, context):
    model = mf.load_model(tiny(), context=context)
    assert speed.decode_tokens_per_second(model, n_tokens=5) >= 0


def test_the_first_pass_is_not_timed(tiny, monkeypatch):
    """What compiles, or reads pages from the disk, comes before the clock starts."""
    model, order = mf.load_model(tiny()), []
    original = mf.Session.feed
    monkeypatch.setattr(mf.Session, "feed", lambda self, ids, *a: order.append("feed") or original(self, ids, *a))
    clock = iter([0.0, 2.0])
    stand_in = SimpleNamespace(perf_counter=lambda: order.append("clock") or next(clock))
    monkeypatch.setattr(speed, "time", stand_in)  # the engine reads the clock for itself
    assert speed.decode_tokens_per_second(model, n_tokens=4) == 2.0
    assert order == ["feed", "clock", *["feed"] * 4, "clock"]
