"""How two engines are compared: rounding makes two right ones differ, so tokens and logits have a rule each."""

import numpy as np


def clear_steps(model, cases) -> tuple[int, int]:
    """(steps, agreed): fed the other engine's own greedy tokens, how often our arg max is its next token.

    Only steps count where its margin between the first and the second logit exceeds 0.1 of their standard deviation.
    """
    steps = agreed = 0
    for case in cases:
        session = model.session()
        logits = session.feed(case["ids"])
        for token, margin in zip(case["greedy"], case["margin"], strict=True):
            if margin > 0.1 * case["logits_std"]:
                steps += 1
                agreed += int(logits.argmax()) == token
            logits = session.feed([token])
    return steps, agreed


def distance(logits, exact) -> float:
    """Root mean square of logits - exact, both [n_steps, n_vocab]: the mean over the steps."""
    return float(np.sqrt(((np.array(logits) - exact) ** 2).mean(axis=1)).mean())
