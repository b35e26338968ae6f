"""`python -m course.scorecard NAME …` measures claims anew and prints what they found; without a
name, it lists them.
"""

import argparse

from course import scorecard
from course.evidence.claims import CLAIMS

parser = argparse.ArgumentParser(
    prog="python -m course.scorecard", description="Measure claims anew."
)
parser.add_argument(
    "names", nargs="*", metavar="NAME", help="of claims; without a name all are listed"
)
given = parser.parse_args().names

for name in given or sorted(CLAIMS):
    if name not in CLAIMS:
        parser.error(f"no claim {name!r}; without a name all are listed")
    if not given:
        print(name, "-", CLAIMS[name].statement)
    for part in (CLAIMS[name].parts or [name]) if given else ():
        claim, found = CLAIMS[part], CLAIMS[part].measure()
        print(
            f"{claim.statement}\n{scorecard.LOOKS[found.verdict][0]} {found.verdict}: "
            f"{found.measured}"
        )
        print(
            f"{found.words}\n" * bool(found.words)
            + f"Rule: {claim.rule.text}\nNothing: {scorecard.of_nothing(claim, found)}"
        )
        print(f"Ruler: {scorecard.calibration(claim)}")
