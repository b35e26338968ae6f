"""Check that each quotation in data/sources.csv occurs in its source, and seal it.

A quotation must occur as one contiguous piece.

The five source documents are not in the repository. Whoever has them as text files runs

    python tools/quotations.py talk=slides.md,slides.txt note=note.md abstract=abstract.txt
    paper=paper.txt

A quotation that is found is sealed, which means that the column `check` holds a digest of it. A
test computes the digests again, so it fails if somebody changes a quotation without the source at
hand. TeX is ignored on both sides, as `plain` explains.
"""

import argparse
import csv
import hashlib
import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "data/sources.csv"
TEX = [  # parts of formulas in the sources, and how we quote them
    (r"\\textcircled\{\\small (\d)\}", lambda match: "①②③④⑤⑥⑦⑧⑨"[int(match[1]) - 1]),
    (r"\{\}\^\{\\tiny \[[\d,]+\]\}", ""),  # a reference mark
    (r"\\textcolor\{\w+\}\{([^{}]*)\}", r"\1"),
    (r"\\(?:text|textbf|bm|mathbf)\{([^{}]*)\}", r"\1"),
    (r"\\xrightarrow\{([^{}]*)\}", r"—\1→"),
    (r"\\(?:ldots|dots|cdots)(?![A-Za-z])", "…"),
    (r"\\approx(?![A-Za-z])", "≈"),
    (r"\\rightarrow(?![A-Za-z])", "→"),
    (r"\\uparrow(?![A-Za-z])", "↑"),
    (r"\\theta(?![A-Za-z])", "θ"),
    (r"\\[:,;!]", " "),
    (r"\$|\*\*|\*|`", ""),
    (r"[‘’“”\"]", "'"),
    (r"\s+", " "),
    (r" ?— ?| ?→ ?", lambda match: match[0].strip()),
]


def plain(text: str) -> str:
    """Remove TeX commands from a text, and make quotation marks and spaces uniform.

    >>> plain("难度: $\\\\textcircled{\\\\small 3} < \\\\textcircled{\\\\small 1}$")
    '难度: ③ < ①'
    >>> plain("$\\\\approx$ ‘$0111 \\\\ldots 11$’")
    "≈ '0111 … 11'"
    """
    for pattern, sign in TEX:
        text = re.sub(pattern, sign, text)
    return text.strip()


def contains(document: str, quotation: str) -> bool:
    """Return whether a document contains a quotation as one contiguous piece, apart from TeX.

    >>> contains("A head attends. Nobody knows why.", "A head attends")
    True
    >>> contains("A, then B", "A B")
    False
    """
    return plain(quotation) in plain(document)


def seal(row: dict[str, str]) -> str:
    """Compute the digest of a row's document and quotation, ten hexadecimal digits."""
    return hashlib.sha256(f"{row['document']}\n{row['quotation']}".encode()).hexdigest()[:10]


def read() -> tuple[str, list[dict[str, str]]]:
    """Read the head of the table (its comments) and its rows."""
    lines = TABLE.read_text().splitlines(keepends=True)
    head = [line for line in lines if line.startswith("#")]
    return "".join(head), list(csv.DictReader(lines[len(head) :]))


def check(documents: dict[str, list[str]]) -> list[str]:
    """Seal the quotations that occur in their documents, and return those that occur in none."""
    head, rows = read()
    missing = []
    for row in rows:
        if any(contains(text, row["quotation"]) for text in documents.get(row["document"], [])):
            row["check"] = seal(row)
        elif row["document"] in documents:
            missing.append(f"{row['document']}, {row['place']}: {row['quotation']}")
    with TABLE.open("w", newline="") as file:
        file.write(head)
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "documents",
        nargs="+",
        help="name=file or name=file,file, with a name from the column `document` of the table",
    )
    pairs = [argument.partition("=")[::2] for argument in parser.parse_args().documents]
    missing = check(
        {name: [Path(file).read_text() for file in files.split(",")] for name, files in pairs}
    )
    print("\n".join(missing) or "every quotation is contiguous in its source")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
