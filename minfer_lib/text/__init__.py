"""Text in, token ids through the model, text out: the tokenizer, the chat template and the choice of the next token.

`ChatTemplate` is imported on first use, because it brings jinja2 with it and most programs never chat.
"""

from minfer_lib.text.bpe import PRE_TOKENIZERS
from minfer_lib.text.sampling import Greedy, Sampler
from minfer_lib.text.tokenizer import Tokenizer, TokenStream

__all__ = ["PRE_TOKENIZERS", "ChatTemplate", "Greedy", "Sampler", "TokenStream", "Tokenizer"]


def __getattr__(name: str):
    if name == "ChatTemplate":
        from minfer_lib.text.chat import ChatTemplate

        return ChatTemplate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
