"""Pieces of drawn figures: a frame that names the figure, words and boxes where they were put."""

from lesson_cases import texts

from minfer_lib.lessons.shared import svg


def test_a_drawing_has_its_size_and_its_text():
    picture = svg.drawing(["<g/>"], 200, 80, 'a "quoted" figure', font_size=13)
    assert picture.svg.startswith('<svg role="img" aria-label="a &quot;quoted&quot; figure" ')
    assert 'viewBox="0 0 200 80"' in picture.svg and 'style="width:200px;height:80px;max-width:none"' in picture.svg
    assert 'font-size="13"' in picture.svg and picture.svg.endswith("<g/></svg>") and repr(picture) == picture.alt


def test_a_drawing_may_grow_with_the_page():
    picture = svg.drawing([], 200, 80, "", widest=300)
    assert ' width="100%"' in picture.svg and 'style="min-width:200px;max-width:300px"' in picture.svg


def test_words_and_boxes():
    assert svg.text(1.5, 20, "a") == '<text x="1.5" y="20" text-anchor="start">a</text>'
    small = svg.text(0, 0, "<tspan>b</tspan>", "end", size=11, opacity=0.5)
    assert ' font-size="11" opacity="0.5"' in small and texts(small) == ["b"]
    assert 'width="7" height="4" fill="#123456" fill-opacity="0.3"' in svg.box(1, 2, 7, 4, "#123456", 0.3)
