"""Weights of one format never meet activations of another: every crossing is an error, not a wrong number."""

import pytest

import minfer_lib as mf
from minfer_lib.formats.pairing import check_pairing, check_rows, weight_format
from minfer_lib.formats.table import WEIGHT_FORMATS

PARTNER = {name: mf.FORMATS[name].activation for name in WEIGHT_FORMATS}  # which they are, test_table.py says
ACTIVATIONS = ("Q8_0", "Q8_K", None, "Q8_1", "Q8_K_GGML", "Q8_0_PAD40")
CROSSINGS = [(w, a) for w in PARTNER for a in ACTIVATIONS if a != PARTNER[w]]


def row_bytes(name, n):
    return mf.FORMATS[name or "F32"].row_bytes(n)


@pytest.mark.parametrize("weight", PARTNER)
def test_partners_are_accepted(weight):
    check_pairing(weight, PARTNER[weight])
    for n in (256, 768):
        blocks = check_rows(weight, row_bytes(weight, n), row_bytes(PARTNER[weight], n))
        assert blocks == n // mf.FORMATS[weight].block_values


@pytest.mark.parametrize(("weight", "activation"), CROSSINGS)
def test_crossing_is_refused(weight, activation):
    says = f"{weight} weights take {PARTNER[weight] or 'float32'} activations, not {activation or 'float32'}"
    with pytest.raises(mf.PairingError, match=says):
        check_pairing(weight, activation)
    with pytest.raises(mf.PairingError, match=says):  # found by the length of the row alone
        check_rows(weight, row_bytes(weight, 512), row_bytes(activation, 512))


@pytest.mark.parametrize("weight", PARTNER)
def test_rows_of_other_lengths(weight):
    w, a = row_bytes(weight, 512), row_bytes(PARTNER[weight], 512)
    for w_bytes, a_bytes in (
        (w, a - 1),
        (w, a + 1),
        (w, 0),
        (w, 2 * a),
        (w, row_bytes(PARTNER[weight], 256)),
        (0, 0),
        (0, a),
    ):
        with pytest.raises(mf.ArgumentError):
            check_rows(weight, w_bytes, a_bytes)
    if w > 512 * 2:
        return
    with pytest.raises(mf.ArgumentError, match="whole number"):
        check_rows(weight, w - 1, a)


@pytest.mark.parametrize("name", ["Q8_1", "Q8_K", "Q8_K_GGML", "Q8_0_PAD40", "Q4_X", "", "q4_0"])
def test_what_holds_no_weights(name):
    with pytest.raises(mf.ArgumentError, match="is not a weight format. Choose one of: F32, F16"):
        weight_format(name)
