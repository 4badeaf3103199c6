"""What each preset costs: every preset with its error."""

from minfer_lib.lessons import presets_picture


def test_presets_are_named_with_their_errors():
    points = {"Q2_K": (2.7, 2.5, 0.4), "Q4_0": (4.5, 0.4, 0.1), "Q8_0": (8.5, -0.01, 0.02)}
    picture = presets_picture(points)
    for name, (bits, rise, error) in points.items():
        assert f"{name} {bits:.2f} bits {rise:+.2f} ± {error:.2f} %" in picture.alt
        assert f">{name}<" in picture.svg
    assert ">K-quants<" in picture.svg and ">blocks of 32<" in picture.svg
    assert ">K-quants<" not in presets_picture({"Q8_0": (8.5, 0.1, 0.1)}).svg
