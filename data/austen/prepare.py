"""The six novels -> build/chapters.json (train, valid, test) and heldout.txt (test).

    apt-get download r-cran-janeaustenr && dpkg -x r-cran-janeaustenr_*.deb deb
    python prepare.py deb/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb

Rdata.rdb is a row of compressed R objects, one novel each: a character vector of hard-wrapped lines. Needs no packages.
"""

import json
import re
import struct
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
HEADING = re.compile(r"chapter [ivxlc\d]+", re.IGNORECASE)
FURNITURE = re.compile(r"volume [ivx]+|\(?end of volume.*|the end|finis|[* ]+|\[[^\]]*\]|\*vide .*", re.IGNORECASE)
MARKS = re.compile("[_*]")  # emphasis, footnote stars
NOTES = "A NOTE ON THE TEXT"  # the editor's, after the last chapter of Northanger Abbey
NOVELS = 6


def r_objects(rdb: bytes):
    """Each object of an R lazy-load file, decompressed: a big-endian u32 (its size), then a zlib stream."""
    while rdb:
        stream = zlib.decompressobj()
        yield stream.decompress(rdb[4:])
        rdb = stream.unused_data


def r_strings(data: bytes) -> list[str]:
    """The strings of one serialized character vector: R's XDR format, version 3, which names its encoding."""
    encoding_size, = struct.unpack_from(">i", data, 14)
    count, = struct.unpack_from(">i", data, 18 + encoding_size + 4)
    at, strings = 18 + encoding_size + 8, []
    for _ in range(count):
        size, = struct.unpack_from(">i", data, at + 4)  # after the string's flags
        strings.append(data[at + 8:at + 8 + size].decode())
        at += 8 + size
    return strings


def chapters(lines: list[str]) -> list[str]:
    """The chapters of one novel, without title page, headings and notes."""
    if NOTES in lines:
        lines = lines[:lines.index(NOTES)]
    starts = [i for i, line in enumerate(lines) if HEADING.fullmatch(line.strip())]
    return [clean(lines[start + 1:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def clean(lines: list[str]) -> str:
    """One paragraph a line, an empty line between two; single spaces; no marks."""
    kept = [line for line in lines if not line.strip() or not FURNITURE.fullmatch(line.strip())]
    paragraphs = re.split(r"\n\s*\n", MARKS.sub("", "\n".join(kept)))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())


def main(rdb: Path) -> None:
    split = {"train": [], "valid": [], "test": []}
    novels = [r_strings(data) for data in r_objects(rdb.read_bytes())]
    assert len(novels) == NOVELS
    for lines in novels:
        texts = chapters(lines)
        part = {len(texts) // 4: "valid", len(texts) // 2: "test", len(texts) * 3 // 4: "valid"}
        for index, text in enumerate(texts):
            split[part.get(index, "train")].append(text)
        print(f"{lines[0]:22} {len(texts):3} chapters; held out, counted from 1: {[i + 1 for i in part]}")
    (HERE / "build").mkdir(exist_ok=True)
    (HERE / "build/chapters.json").write_text(json.dumps(split, ensure_ascii=False, indent=1))
    (HERE / "heldout.txt").write_text("\n\n".join(split["test"]) + "\n")
    for name, texts in split.items():
        print(f"{name}: {len(texts)} chapters, {sum(len(text.encode()) for text in texts)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
