"""For each claim, the verdicts that it may have, and why; where a closed form or a committed table decides, just one."""

from expected import chapter1, chapter2, chapter3, chapter4, chapter5

EXPECTED = chapter1.EXPECTED | chapter2.EXPECTED | chapter3.EXPECTED | chapter4.EXPECTED | chapter5.EXPECTED
