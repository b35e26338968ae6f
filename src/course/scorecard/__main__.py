"""`python -m course.scorecard NAME …` measures claims anew and prints what they found; without a name, it lists them."""

import sys

from course import scorecard
from course.evidence.claims import CLAIMS

for name in sys.argv[1:] or sorted(CLAIMS):
    if name not in CLAIMS:
        sys.exit(f"no claim {name!r}; without a name all are listed")
    if len(sys.argv) == 1:
        print(name, "-", CLAIMS[name].statement)
    for part in (CLAIMS[name].parts or [name]) if len(sys.argv) > 1 else ():
        claim, found = CLAIMS[part], CLAIMS[part].measure()
        print(f"{claim.statement}\n{scorecard.LOOKS[found.verdict][0]} {found.verdict}: {found.measured}")
        print(
            f"{found.words}\n" * bool(found.words)
            + f"Rule: {claim.rule.text}\nNothing: {scorecard.of_nothing(claim, found)}"
        )
        print(f"Ruler: {scorecard.calibration(claim)}")
