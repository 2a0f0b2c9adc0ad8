"""Parser speed: megabytes of PTX a CPU second, over the files given.

    python benchmarks/parser.py FILE.ptx...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sassay.ptx.lexer import Source
from sassay.ptx.parser import parse


def main(paths: list[str]) -> None:
    texts = [(path, Path(path).read_text()) for path in paths]
    size = sum(len(text) for _, text in texts) / 1e6
    start = time.process_time()
    for path, text in texts:
        Source(text, path)
    middle = time.process_time()
    for path, text in texts:
        parse(text, path)
    end = time.process_time()
    print(f"{len(texts)} files, {size:.2f} MB; lexer {size / (middle - start):.2f} MB/s; whole parser {size / (end - middle):.2f} MB/s")


if __name__ == "__main__":
    main(sys.argv[1:])
