"""What a model takes beside its mapped file: read from the kernel's own account of a fresh process."""

import json
import os
import subprocess
import sys

import pytest

MEASURE = """
import json, sys
import minfer_lib as mf

session = mf.load_model(sys.argv[1], context=2048).session()
session.feed(range(128))  # the longest pass, so the largest buffers
cache = session.cache
cache.keys[:] = cache.values[:] = 0  # every page, as 2048 tokens would
with open("/proc/self/status") as status:
    kilobytes = {key: int(value.split()[0]) for key, value in (line.split(":", 1) for line in status) if "kB" in value}
print(json.dumps({"peak": 1024 * kilobytes["VmHWM"], "cache": cache.keys.nbytes + cache.values.nbytes}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_context_of_2048_fits_into_400_megabytes_over_the_file(smollm2):
    warm = [sys.executable, "-m", "minfer_lib", "warmup", "--model", str(smollm2)]
    subprocess.run(warm, check=True, capture_output=True)  # the compiler takes memory of its own
    measured = subprocess.run([sys.executable, "-c", MEASURE, str(smollm2)], check=True, capture_output=True, text=True)
    numbers = json.loads(measured.stdout)
    over = numbers["peak"] - os.path.getsize(smollm2)
    assert numbers["cache"] == 30 * 3 * 2048 * 64 * 2 * 2  # layers, heads, tokens, values, f16, keys and values
    assert over < 400e6, f"{over / 1e6:.0f} MB"
