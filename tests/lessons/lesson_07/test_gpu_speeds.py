"""Pictures of what was measured on a GPU."""

from lesson_cases import texts

from minfer_lib.lessons import crossover_picture, launches_picture, rungs_picture


def test_a_rung_tells_its_share_of_the_roof():
    picture = rungs_picture({"old": 110.0, "wide": 2250.0, "staged": 4200.0}, 4500.0, {"another engine": 2000.0})
    drawn = texts(picture.svg)
    for text in ("110 (2%)", "2,250 (50%)", "4,200 (93%)", "2,000 (44%)", "reading alone, 4,500", "another engine"):
        assert text in drawn
    assert "old: 110; wide: 2,250; staged: 4,200; another engine: 2,000. Reading alone reaches 4,500." in picture.alt


def test_the_best_launch_of_each_matrix_is_told():
    speeds = {"8 × 1": {"a": 100.0, "b": 300.0}, "4 × 4": {"a": 200.0, "b": 250.0}, "2 × 1": {"a": 50.0}}
    picture = launches_picture(speeds, 400.0)
    assert "3 launches. The best: a 200 with 4 × 4; b 300 with 8 × 1." in picture.alt
    assert {"8 × 1", "4 × 4", "2 × 1", "a", "b"} <= set(texts(picture.svg))


def test_the_crossover_has_both_kernels():
    rows = [{"n_out": n, "us_f32": 10.0 + n, "us_with_quantizer": 30.0} for n in (8, 128)]
    picture = crossover_picture(rows, 4500.0, 2464)
    assert "8 rows 18 and 30; 128 rows 138 and 30" in picture.alt
    assert {"8", "128", "rows", "µs", "the old kernel", "MMVQ and its quantizer"} <= set(texts(picture.svg))
