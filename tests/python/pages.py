"""Markdown of pages by trafilatura, the peer of haft-page.

`pages.py --all PAGES OUT` writes OUT/NAME.md for each page of a folder; `pages.py --time N FILE` tells
N times how long one page took.
"""

import gzip
import pathlib
import sys
import time

import trafilatura


def markdown(html):
    wanted = {"include_formatting": True, "include_links": True, "include_tables": True, "include_images": True}
    return trafilatura.extract(html, output_format="markdown", **wanted) or ""


def html(file):
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


match sys.argv[1:]:
    case ["--all", pages, out]:
        for file in sorted(pathlib.Path(pages).glob("*.html*")):
            name = file.name.split(".html")[0]
            (pathlib.Path(out) / f"{name}.md").write_text(markdown(html(file)), encoding="utf-8")
    case ["--time", runs, file]:
        data = html(pathlib.Path(file))
        for _ in range(int(runs)):
            start = time.perf_counter()
            markdown(data)
            print(f"page: {(time.perf_counter() - start) * 1e6:.1f} us")
    case _:
        sys.exit(__doc__)
