"""`minfer bench`: run a measurement, print its table row by row as it comes, return what goes into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from minfer_lib.bench import dot_kernels, gpu_kernels, speed
from minfer_lib.bench.peer.compare import Compare, Comparison
from minfer_lib.bench.peer.goals import Verdict, judge
from minfer_lib.bench.peer.plot import write_plot
from minfer_lib.engine.session import Model


def decode_table(load: Callable[[int], Model], thread_counts: Iterable[int], n_tokens: int) -> dict:
    """load: number of threads -> the model, ready to run."""
    rows = []
    for threads in thread_counts:
        model = load(threads)
        if not rows:
            print(f"{model.gguf.path.name}: {speed.bytes_per_token(model) / 1e6:.1f} MB of weights a token")
            print(f"{'threads':>8} {'tokens/s':>10} {'GB/s':>8} {'ceiling GB/s':>14} {'share':>7}")
        row = speed.decode_speed(model, n_tokens)
        rows.append(row.as_dict())
        print(
            f"{threads:8} {row.tokens_per_second:10.1f} {row.gigabytes_per_second:8.2f} "
            f"{row.ceiling_gigabytes_per_second:14.2f} {row.share_of_ceiling:7.0%}",
            flush=True,
        )
    return {"model": model.gguf.path.name, "decode": rows}


def kernels_table(thread_counts: Iterable[int]) -> dict:
    rows = []
    print(f"{'format':8} {'threads':>7} {'kernel':>11} {'cache GB/s':>11} {'memory':>8} {'ceiling':>8} {'share':>6}")
    for threads in thread_counts:
        for format_ in dot_kernels.FORMATS_BUILT:
            for row in dot_kernels.kernel_speeds(format_, threads):
                rows.append(asdict(row))
                print(
                    f"{row.format:8} {row.threads:7} {row.isa:>11} {row.cache:11.1f} {row.memory:8.1f} "
                    f"{row.ceiling:8.1f} {row.memory / row.ceiling:6.0%}",
                    flush=True,
                )
    return {"kernels": rows}


def gpu_table() -> dict:
    """Raises UnsupportedError without a GPU or without the extra "gpu"."""
    report = gpu_kernels.measure()
    ceiling = report["probe"]
    print(f"{report['device']}: reading alone {ceiling:.0f} GB/s, latency {report['latency_ns']:.0f} ns")
    print(
        "GB/s of weights: a launch a matrix, alone and with the quantizer; all copies at once, and its share of reading"
    )
    print(f"{'format':6} {'n_out x n_in':>15} {'kernel':>10} {'alone':>6} {'quantizer':>9} {'at once':>7} {'share':>6}")
    for row in report["products"]:
        line = f"{row['format']:6} {row['n_out']:7} x {row['n_in']:5} {row['kernel']:>10} {row['gbps']:6.0f}"
        if "gbps_at_once" in row:
            at_once = row["gbps_at_once"]
            line += f" {row['gbps_overlapping']:9.0f} {at_once:7.0f} {at_once / ceiling:6.0%}"
        print(line)
    return report


def peer_table(
    paths: Sequence[Path], thread_counts: Sequence[int], rounds: int, plot: Path | None, table: Path | None
) -> dict:
    """Speeds of every file at every number of threads; start and memory of the first file; then a verdict on each goal.

    plot, table: files for the picture of the ratios, and for the verdicts as Markdown.
    """
    rows: list[Comparison] = []
    print("the median of the rounds, and how far they spread")
    print(f"{'model':34} {'what':19} {'threads':>7} {'minfer':>20} {'llama.cpp':>20} {'unit':9} {'ratio':>6}")
    for path in paths:
        compare = Compare(path, rounds)
        for threads in thread_counts:
            for row in compare.speed(threads):
                _print_comparison(row)
                rows.append(row)
        if path == paths[0]:
            for row in compare.start_and_memory(thread_counts[-1]):
                _print_comparison(row)
                rows.append(row)
    verdicts = judge(rows)
    print("\n" + verdicts_table(verdicts), end="")
    if table:
        table.write_text(verdicts_table(verdicts), encoding="utf-8")
    if plot:
        write_plot(rows, plot)
    return {"peer": [row.as_dict() for row in rows], "goals": [asdict(verdict) for verdict in verdicts]}


def _print_comparison(row: Comparison) -> None:
    ours, theirs = spread(row.ours), spread(row.theirs)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    print(f"{row.model:34} {row.what:19} {row.threads:7} {ours:>20} {theirs:>20} {row.unit:9} {ratio:>6}", flush=True)


def spread(rounds: Sequence[float]) -> str:
    if not rounds:
        return "-"
    middle = f"{median(rounds):.3g}"
    return middle if len(rounds) == 1 else f"{middle} ({min(rounds):.3g}-{max(rounds):.3g})"


def verdicts_table(verdicts: Sequence[Verdict]) -> str:
    """As Markdown: a line for each goal."""
    head = "| what | model | threads | measured | rounds | must | aim | reached |\n|---|---|--:|--:|---|--:|--:|---|"
    lines = [
        f"| {v.what} | {v.model} | {v.threads} | {v.measured:.2f} {v.unit} | {v.lowest:.2f} to {v.highest:.2f} "
        f"| {v.must:g} | {v.aim:g} | {v.reached} |"
        for v in verdicts
    ]
    return "\n".join([head, *lines, ""])
