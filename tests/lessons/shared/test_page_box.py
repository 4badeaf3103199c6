"""A box of widgets on a page where no kernel runs."""

from minfer_lib.lessons.shared.page_box import PageBox


class Greeting(PageBox):
    def _page(self):
        return "<p>hello</p>"


def test_a_page_gets_its_html_and_a_notebook_its_widgets():
    bundle = Greeting()._repr_mimebundle_()
    assert bundle["text/html"] == "<p>hello</p>" and "application/vnd.jupyter.widget-view+json" in bundle
