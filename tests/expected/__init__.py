"""For each claim, the verdicts that it may have, and why; where a closed form or a committed table decides, just one.

They stand in `chapterN.toml`. `EVIDENCE` of `chapterN.py` holds, for a claim, made-up evidence for each verdict that its
function can give: what stands in for which name of the claim's module.
"""

import tomllib
from pathlib import Path

from expected import chapter1, chapter2, chapter3, chapter4, chapter5

EXPECTED = {
    name: (set(row["may"]), row["why"])
    for path in sorted(Path(__file__).parent.glob("chapter*.toml"))
    for name, row in tomllib.loads(path.read_text()).items()
}
EVIDENCE = {
    name: row for each in (chapter1, chapter2, chapter3, chapter4, chapter5) for name, row in each.EVIDENCE.items()
}
