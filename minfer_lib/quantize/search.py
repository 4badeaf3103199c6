"""The searches inside the K-quants and IQ4_NL: which scale, and which minimum, suit 16 or 32 weights best.

A quantizer that takes the extremes and divides wastes codes on outliers. These try other scales, fit each by weighted
least squares to the codes that it gives, and keep the one with the smallest error. Source: ggml `ggml-quants.c`. The
bytes of a file depend on every rounding here, so each sum is float32, term by term, in ggml's order.
"""

from __future__ import annotations

import numpy as np

from minfer_lib.native.jit import kernel

GROUP_MAX_EPS = np.float32(1e-15)  # ggml's: weights all smaller than this are taken for zeros

# One try of search_scale_min, as a notebook records it: the codes were round(inverse * (x - origin)), the fit gave
# scale and min, so value = scale * code + min, with this weighted error; `kept` if it was the best so far.
TRY = np.dtype(
    [("inverse", "f4"), ("origin", "f4"), ("scale", "f4"), ("min", "f4"), ("error", "f4"), ("kept", "?")], align=True
)


@kernel
def nearest(value):
    """float32 -> int32, half to even: adding 1.5 * 2**23 leaves no bit for a fraction. ggml: nearest_int."""
    bits = np.float32(value + np.float32(12582912)).view(np.int32)
    return np.int32((bits & 0x007FFFFF) - 0x00400000)


@kernel
def clamp(code, low, high):
    """The nearest code between low and high."""
    return max(np.int32(low), min(np.int32(high), code))


@kernel
def search_scale_min(x, weights, most, start, step, tries, absolute, codes, trial, trace):
    """x, weights: f32[n]; codes, trial: f32[n], written -> (scale, minimum >= 0) so that x ~ scale * code - minimum.

    Codes go from 0 to `most`. Try 0 spreads them from min(x) to max(x); tries 1 to `tries` + 1 use most + start + i *
    step steps for that distance instead. `absolute`: the error is |.|, otherwise its square. `trial` is scratch;
    `trace`, TRY[tries + 2] or None, receives every try. ggml: make_qkx2_quants.
    """
    n, most = len(x), np.float32(most)
    low = high = x[0]
    sum_w, sum_x = weights[0], weights[0] * x[0]
    for i in range(1, n):
        low, high = min(low, x[i]), max(high, x[i])
        sum_w += weights[i]
        sum_x += weights[i] * x[i]
    low = min(low, np.float32(0))
    if high == low:
        codes[:] = 0
        return np.float32(0), -low
    inverse = most / (high - low)
    scale = np.float32(1) / inverse
    _spread(x, inverse, low, most, codes)
    best = _error(x, weights, codes, scale, low, absolute)
    if trace is not None:
        _record(trace[0], inverse, low, scale, low, best, True)
    for i in range(tries + 1):
        inverse = (np.float32(start) + np.float32(step) * np.float32(i) + most) / (high - low)
        origin = low  # of the best try so far, as in ggml
        _spread(x, inverse, origin, most, trial)
        sum_l = sum_l2 = sum_xl = np.float32(0)
        for j in range(n):
            term = weights[j] * trial[j]
            sum_l += term
            sum_l2 += term * trial[j]
            sum_xl += term * x[j]
        det = sum_w * sum_l2 - sum_l * sum_l
        if not det > 0:
            continue
        new_scale = (sum_w * sum_xl - sum_x * sum_l) / det
        new_low = (sum_l2 * sum_x - sum_l * sum_xl) / det
        if new_low > 0:
            new_scale, new_low = sum_xl / sum_l2, np.float32(0)
        error = _error(x, weights, trial, new_scale, new_low, absolute)
        kept = error < best
        if trace is not None:
            _record(trace[i + 1], inverse, origin, new_scale, new_low, error, kept)
        if kept:
            codes[:] = trial
            best, scale, low = error, new_scale, new_low
    return scale, -low


@kernel
def _spread(x, inverse, origin, most, codes):
    """codes = round(inverse * (x - origin)) between 0 and most."""
    for i in range(len(x)):
        codes[i] = np.float32(clamp(nearest(inverse * (x[i] - origin)), 0, np.int32(most)))


@kernel
def _error(x, weights, codes, scale, low, absolute):
    """The weighted sum of |scale * code + low - x|, or of its square."""
    total = np.float32(0)
    for i in range(len(x)):
        diff = scale * codes[i] + low - x[i]
        total += weights[i] * (abs(diff) if absolute else diff * diff)
    return total


@kernel
def _record(row, inverse, origin, scale, low, error, kept):
    row.inverse, row.origin, row.scale, row.min, row.error, row.kept = inverse, origin, scale, low, error, kept


@kernel
def signed_max(x):
    """The value of largest magnitude, with its sign; of equals, the first."""
    top = np.float32(0)
    for value in x:
        if abs(value) > abs(top):
            top = value
    return top


@kernel
def search_scale(x, most, codes):
    """x: f32[n]; codes: f32[n], written, from -most to most - 1 -> scale, so that x ~ scale * code.

    The largest weight is given the code -most, then -(most + i / 10) for i = -9 ... 9. The weight of an error is x * x.
    ggml: make_qx_quants with rmse_type 1.
    """
    top = signed_max(x)
    if abs(top) < GROUP_MAX_EPS:
        codes[:] = -most  # stored as 0
        return np.float32(0)
    scale = best = np.float32(0)
    for turn in range(19):
        i = np.float32(0 if turn == 0 else turn - 10 if turn < 10 else turn - 9)
        inverse = -(np.float32(most) + np.float32(0.1) * i) / top
        sum_lx = sum_l2 = np.float32(0)
        for value in x:
            code = np.float32(clamp(nearest(inverse * value), -most, most - 1))
            weight = value * value
            sum_lx += weight * value * code
            sum_l2 += weight * code * code
        if turn == 0 or (sum_l2 > 0 and sum_lx * sum_lx > best * sum_l2):
            for j in range(len(x)):
                codes[j] = np.float32(clamp(nearest(inverse * x[j]), -most, most - 1))
            scale = sum_lx / sum_l2 if sum_l2 != 0 else np.float32(0)
            best = scale * sum_lx
    return scale


@kernel
def refine_scale(x, most, codes):
    """As search_scale, by moving one code at a time, in up to five passes: a code changes if that lessens the error.

    Each weight is taken out of the fit, given the code that suits the scale of the others, and put back. ggml:
    make_q3_quants.
    """
    top = signed_max(x)
    if abs(top) < GROUP_MAX_EPS:
        codes[:] = -most  # stored as 0
        return np.float32(0)
    inverse = -np.float32(most) / top
    sum_lx = sum_l2 = np.float32(0)
    for i in range(len(x)):
        codes[i] = np.float32(clamp(nearest(inverse * x[i]), -most, most - 1))
        weight = x[i] * x[i]
        sum_lx += weight * x[i] * codes[i]
        sum_l2 += weight * codes[i] * codes[i]
    for _ in range(5):
        changed = False
        for i in range(len(x)):
            weight = x[i] * x[i]
            lx = sum_lx - weight * x[i] * codes[i]
            if not lx > 0:
                continue
            l2 = sum_l2 - weight * codes[i] * codes[i]
            code = np.float32(clamp(nearest(x[i] * l2 / lx), -most, most - 1))
            if code == codes[i]:
                continue
            lx += weight * x[i] * code
            l2 += weight * code * code
            if l2 > 0 and lx * lx * sum_l2 > sum_lx * sum_lx * l2:
                codes[i], sum_lx, sum_l2 = code, lx, l2
                changed = True
        if not changed:
            break
    return sum_lx / sum_l2 if sum_l2 > 0 else np.float32(0)


@kernel
def nearest_level(value, levels):
    """The index of the level nearest to `value`; levels: f32[n], ascending. Of two as near, the higher.

    NaN gets the last one, as in ggml's best_index_int8.
    """
    high = 1
    for k in range(1, len(levels) - 1):
        high += 0 if value < levels[k] else 1
    return high - 1 if value - levels[high - 1] < levels[high] - value else high


@kernel
def fit_levels(x, levels, tries, scales, codes):
    """x: f32[n_blocks, n], levels: f32[16] -> scales: f32[n_blocks], codes: u8[n_blocks, n]: x ~ scale * levels[code].

    The first try gives the largest weight the level -levels[0], the others levels[0] + i for i = -tries ... tries. Each
    is fitted by least squares with the weights x * x, and the best one's scale decides about the codes. ggml:
    quantize_row_iq4_nl_impl.
    """
    for b in range(len(x)):
        top, scale, best = signed_max(x[b]), np.float32(0), np.float32(0)
        if abs(top) >= GROUP_MAX_EPS:
            inverse = np.float32(1) / (-top / levels[0])
            for turn in range(2 * tries + 2):
                if turn > 0:
                    inverse = (np.float32(turn - 1 - tries) + levels[0]) / top
                sum_lx = sum_l2 = np.float32(0)
                for value in x[b]:
                    level = levels[nearest_level(inverse * value, levels)]
                    weight = value * value
                    sum_lx += weight * level * value
                    sum_l2 += weight * level * level
                if turn == 0 or (sum_l2 > 0 and sum_lx * sum_lx > best * sum_l2):
                    scale = sum_lx / sum_l2
                    best = scale * sum_lx
        scales[b] = scale
        inverse = np.float32(1) / scale if scale != 0 else np.float32(0)
        for i in range(len(x[b])):
            codes[b, i] = nearest_level(inverse * x[b, i], levels)
