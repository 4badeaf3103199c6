"""The generation panel without a browser: buttons, and the text as it comes."""

from minfer_lib.lessons import GenerationPanel


def test_the_panel_writes_what_generate_yields(model):
    panel = GenerationPanel(model, "the ", max_tokens=12)
    panel._run.click()
    ids = list(model.generate(model.tokenizer.encode("the "), max_tokens=12))
    assert panel.wait() == "the " + model.tokenizer.decode(ids)
    assert f"{len(ids)} tokens" in panel._speed.value and panel._speed.value.endswith(", done")
    assert not panel._run.disabled and panel._halt.disabled
    assert "<b>the </b>" in panel._repr_mimebundle_()["text/html"]


def test_it_stops(model):
    panel = GenerationPanel(model, "the ", lambda logits, ids: panel.stop() or 5, max_tokens=10**6)
    panel.run()
    panel.wait()
    assert panel._speed.value.startswith("1 tokens") and panel._speed.value.endswith(", stopped")


def test_what_goes_wrong_is_said_where_the_speed_stands(model):
    panel = GenerationPanel(model, "")
    panel.run()
    panel.wait()
    assert "no tokens" in panel._speed.value and not panel._run.disabled
