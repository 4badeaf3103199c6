"""build/chapters.json and build/tokenizer.json -> build/NAME.pt and build/NAME.json.

    python train.py --help          README.md has the four commands that made austen-f16.gguf; a CUDA GPU, or patience

The weights kept are the running average (EMA) of the training weights at the step where the validation loss was lowest.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from model import Config, Llama, load
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

BUILD = Path(__file__).parent / "build"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
END = 0  # <|endoftext|> stands before each chapter


def stream(texts: list[str], tokenizer: Tokenizer) -> Tensor:
    """[tokens]: every chapter after an end-of-text token, in one row."""
    return torch.tensor([i for text in texts for i in [END, *tokenizer.encode(text).ids]], device=DEVICE)


def batches(ids: Tensor, window: int, size: int, seed: int) -> Iterator[Tensor]:
    """One epoch of [size, window + 1]: the stream cut at a random phase, the windows shuffled, the rest dropped."""
    random = torch.Generator().manual_seed(seed)
    phase = int(torch.randint(window, (1,), generator=random))
    windows = ids[phase:].unfold(0, window + 1, window)
    for rows in torch.randperm(len(windows), generator=random).split(size):
        if len(rows) == size:
            yield windows[rows.to(DEVICE)]


@torch.no_grad()
def evaluate(model: nn.Module, ids: Tensor, window: int) -> float:
    """Nats a token over the stream in windows that do not overlap, each predicted from its own beginning."""
    model.eval()
    row = F.pad(ids, (0, -(len(ids) - 1) % window), value=-100).unfold(0, window + 1, window)
    total = sum(F.cross_entropy(model(part[:, :-1].clamp(min=0)).flatten(0, 1), part[:, 1:].flatten(), reduction="sum")
                for part in row.split(8))
    return float(total) / (len(ids) - 1)


def optimizers(model: nn.Module, rate: float, decay: float) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for the embedding and, without decay, the norms."""
    matrices = [p for p in model.blk.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    outer = list({model.token_embd.weight, model.output.weight})
    groups = [{"params": outer, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return [torch.optim.Muon(matrices, rate, decay, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(groups, rate, betas=(0.9, 0.95))]


def schedule(step: int, steps: int, warmup: int = 100) -> float:
    """Share of the full learning rate: up over the warm-up, then down to zero along a half cosine."""
    return min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / steps))


def loss_of(model: nn.Module, batch: Tensor, teachers: list[nn.Module], share: float) -> Tensor:
    """Cross entropy against the next token and, for a share, against the mean prediction of the teachers."""
    inputs, targets = batch[:, :-1], batch[:, 1:].flatten()
    with torch.autocast(DEVICE, torch.bfloat16):
        logits = model(inputs).flatten(0, 1).float()
        loss = F.cross_entropy(logits, targets)
        if teachers:
            with torch.no_grad():
                soft = sum(teacher(inputs).flatten(0, 1).float().softmax(-1) for teacher in teachers) / len(teachers)
            loss = (1 - share) * loss + share * F.cross_entropy(logits, soft)
    return loss


def save(model: Llama, path: Path) -> None:
    """Matrices in float16, as the GGUF file holds them; norms in float32."""
    weights = {name: value.half() if value.ndim == 2 else value for name, value in model.state_dict().items()}
    if model.config.tied:
        del weights["output.weight"]
    torch.save({"config": asdict(model.config), "weights": weights}, path)


class Log:
    """The losses of a run, and the best average so far on disk."""

    def __init__(self, options: argparse.Namespace, tokens_a_byte: float) -> None:
        self.options, self.bits = options, tokens_a_byte / math.log(2)
        self.rows, self.recent, self.began = [], [], time.time()

    def add(self, step: int, epoch: float, valid: float, average: Llama) -> None:
        """A row: the mean training loss (with dropout) since the last one, the validation loss of the average."""
        if valid < min((row["valid_loss"] for row in self.rows), default=math.inf):
            save(average, BUILD / f"{self.options.name}.pt")
        self.rows.append({"step": step, "epoch": epoch, "train_loss": round(float(torch.stack(self.recent).mean()), 4),
                          "valid_loss": round(valid, 4), "valid_bits_per_byte": round(valid * self.bits, 4)})
        self.recent.clear()
        print(self.rows[-1], flush=True)

    def write(self) -> None:
        report = {"options": vars(self.options), "torch": torch.__version__, "seconds": round(time.time() - self.began),
                  "best": min(self.rows, key=lambda row: row["valid_loss"]), "log": self.rows}
        (BUILD / f"{self.options.name}.json").write_text(json.dumps(report, indent=1))


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.from_file(str(BUILD / "tokenizer.json"))
    split = json.loads((BUILD / "chapters.json").read_text())
    training, validation = stream(split["train"], tokenizer), stream(split["valid"], tokenizer)
    log = Log(options, (len(validation) - 1) / sum(len(text.encode()) for text in split["valid"]))

    config = Config(**{field.name: getattr(options, field.name) for field in fields(Config)})
    model = Llama(config).to(DEVICE)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(options.ema))
    fast, teachers = model, [load(path).to(DEVICE) for path in options.teachers]
    if DEVICE == "cuda":
        fast, teachers = torch.compile(model), [torch.compile(teacher) for teacher in teachers]

    workers = optimizers(model, options.rate, options.decay)
    steps = options.epochs * ((len(training) - config.context) // config.context // options.batch)
    rates = [torch.optim.lr_scheduler.LambdaLR(worker, lambda step: schedule(step, steps)) for worker in workers]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {steps} steps", flush=True)
    supply = (batch for epoch in range(options.epochs)
              for batch in batches(training, config.context, options.batch, options.seed + epoch))
    for step, batch in enumerate(islice(supply, steps), 1):
        model.train()
        loss = loss_of(fast, batch, teachers, options.share)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for worker, rate in zip(workers, rates, strict=True):
            worker.step()
            worker.zero_grad()
            rate.step()
        average.update_parameters(model)
        log.recent.append(loss.detach())
        if step % options.every == 0 or step == steps:
            epoch = round(step / steps * options.epochs, 2)
            log.add(step, epoch, evaluate(average.module, validation, config.context), average.module)
    log.write()


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for field in fields(Config):
        kind = (lambda text: text == "true") if field.type is bool else field.type
        parser.add_argument(f"--{field.name}", type=kind, default=field.default)
    for name, default in (("name", "austen"), ("epochs", 34), ("batch", 16), ("rate", 0.004), ("decay", 3.0),
                          ("ema", 0.99), ("every", 100), ("seed", 7), ("share", 0.7)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--teachers", nargs="*", default=[], help="weights whose mean prediction is learnt too")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
