"""A box of widgets that still shows something on a page where no kernel runs."""

from __future__ import annotations

import ipywidgets as widgets


class PageBox(widgets.VBox):
    """A subclass says in `_page` what a page without a kernel shows in place of the widgets."""

    def _page(self) -> str:
        """Return HTML of what is shown now."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return super()._repr_mimebundle_(**kwargs) | {"text/html": self._page()}
