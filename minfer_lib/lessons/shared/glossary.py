"""The course's words, each in a sentence or two, and the lesson where it is at home."""

from __future__ import annotations

from typing import NamedTuple

from minfer_lib.errors import ArgumentError
from minfer_lib.lessons.shared.html_table import Table


class Term(NamedTuple):
    name: str
    meaning: str
    lesson: int


TERMS = (
    Term("activation", "a number that the model computes while it runs; weights are those that it has learned", 2),
    Term("atomic", "a memory access that nothing can divide: it reads, changes and writes in one step", 6),
    Term("attention", "each token takes a weighted mix of the values of the tokens before it", 8),
    Term("barrier", "a point where each thread waits until all have come", 6),
    Term("block", "a group of weights that share a scale: 32 in Q4_0, 256 in the K-quants (a super-block)", 1),
    Term("bsums", "sums of 16 neighbouring activation codes, kept in a Q8_K block", 5),
    Term("ceiling", "the bytes a second that a loop gets which only reads memory: no kernel on that data is faster", 0),
    Term("chunk", "a piece of a matrix product that one thread computes at a time", 6),
    Term("code", "a small whole number that stands for a weight or an activation; times the scale it is the value", 1),
    Term("decode", "generation after the prompt: one token passes through the model, and gives the next one", 8),
    Term("dot product", "multiply two rows pair by pair, add up: one output of a matrix product", 3),
    Term("dp4a", "a GPU instruction: four int8 products added to an int32", 7),
    Term("embedding", "the matrix with a row for each token: the vector that stands for it", 8),
    Term("GGUF", "the file format: metadata, a table of tensors, and their blocks", 1),
    Term("GQA", "grouped-query attention: several query heads share one key/value head", 8),
    Term("grid", "all thread blocks of one launch", 7),
    Term("head", "a slice of the vectors of attention, 64 or 128 numbers, that works by itself", 8),
    Term("isum", "the sum of a block's products of codes, a whole number, before the scales", 3),
    Term("K-quant", "Q2_K to Q6_K: formats with two levels of scales, 256 weights a block", 5),
    Term("kernel", "a compiled function that works on raw bytes; a kernel set is made for one kind of CPU", 4),
    Term("KV cache", "the keys and values of all tokens so far, in f16: a new token reads them", 8),
    Term("L2 cache", "a GPU's cache between its memory and all of its multiprocessors", 7),
    Term("lane", "one of the equal parts of a vector register; on a GPU one of the 32 threads of a warp", 4),
    Term("launch", "the start of a kernel on a GPU, and how it is spread: warps and rows of a thread block", 7),
    Term("layer", "attention and a feed-forward step; their results are added to the token's vector", 8),
    Term("logit", "the model's score for one token of the vocabulary to come next; softmax makes it a probability", 8),
    Term("margin", "how far the highest logit stands above the second: small where two tokens nearly tie", 8),
    Term("min", "a number that a block subtracts (Q4_1: adds), so that its codes need not be centred", 5),
    Term("MMVQ", "mul_mat_vec_q: a matrix of quantized weights times one vector, on a GPU", 7),
    Term("multiprocessor", "a part of a GPU that runs thread blocks; it holds a limited number of threads", 7),
    Term("outlier", "a number far larger than its neighbours; it sets their scale", 2),
    Term("perplexity", "how badly a model predicts a text: among how many tokens it seems to choose", 5),
    Term("prefill", "reading the prompt: many tokens pass through the model at once", 8),
    Term("preset", "a file's mixture of formats, such as Q4_K_M: which tensor is stored in which", 1),
    Term("quantize", "to round numbers to a few codes and a scale", 2),
    Term("register", "where a CPU keeps what it computes with; a vector register holds 4 to 64 numbers, its lanes", 4),
    Term("residual stream", "a token's vector on its way through the layers; each adds to it", 8),
    Term("RoPE", "rotary positions: pairs of numbers are turned by angles that grow with the position", 8),
    Term("row", "the weights of one output, or the activations of one token: what a dot product takes", 3),
    Term("sampler", "chooses the next token from the logits", 8),
    Term("scale", "d: the number by which a block's codes are multiplied", 1),
    Term("sector", "32 bytes: what a GPU's memory fetches at least", 7),
    Term("shared memory", "a small fast memory that the threads of a thread block share", 7),
    Term("softmax", "exp of each number over the sum of all: makes shares of 1", 8),
    Term("super-block", "256 weights with one d and dmin; each of its sub-blocks has a small scale of its own", 5),
    Term("SwiGLU", "silu(gate) · up: the feed-forward step's way to open and close its numbers", 8),
    Term("tensor", "a named array in the file: a matrix of weights, or a vector", 1),
    Term("thread block", "a few warps that start together on one multiprocessor and can wait for each other", 7),
    Term("tile", "a few rows and tokens multiplied together while they are in the cache; AMX's are registers", 6),
    Term("token", "a piece of text with a number: a word, a part of one, a sign", 8),
    Term("unit", "what one lane of an MMVQ kernel computes in one step: 32 weights of a row", 7),
    Term("warp", "32 threads of a GPU that take each step together", 7),
    Term("word", "32 bits, what one register of a GPU's lane holds: four int8", 7),
)


def glossary(*words: str) -> Table:
    """What `words` mean; without any, all terms. ArgumentError for a word that is not there."""
    known = {term.name.lower(): term for term in TERMS}
    missing = [word for word in words if word.lower() not in known]
    if missing:
        raise ArgumentError(f"the glossary has no {missing[0]!r}. It has: {', '.join(term.name for term in TERMS)}.")
    chosen = [known[word.lower()] for word in words] or TERMS
    return Table(("word", "meaning", "lesson"), [(term.name, term.meaning, f"{term.lesson:02}") for term in chosen])
