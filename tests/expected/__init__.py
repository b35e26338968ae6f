"""For each claim, the verdicts that it may have, and why; where a closed form or a committed table decides, just one.

`EVIDENCE` holds, for a claim, made-up evidence for each verdict that its function can give: what stands in for which
name of the claim's module.
"""

from expected import chapter1, chapter2, chapter3, chapter4, chapter5, chapter6

CHAPTERS = (chapter1, chapter2, chapter3, chapter4, chapter5, chapter6)
EXPECTED = {name: row for chapter in CHAPTERS for name, row in chapter.EXPECTED.items()}
EVIDENCE = {name: row for chapter in CHAPTERS for name, row in getattr(chapter, "EVIDENCE", {}).items()}
