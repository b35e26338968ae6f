"""Measure claims again and print the results: `python -m course.scorecard NAME …`.

Without a name, list the claims.
"""

import argparse

from course import scorecard
from course.evidence.claims import CLAIMS

parser = argparse.ArgumentParser(
    prog="python -m course.scorecard",
    description="Measure claims of the scorecard again and print verdict and numbers.",
)
parser.add_argument(
    "names",
    nargs="*",
    metavar="NAME",
    help="names of claims to measure; without a name, list all claims",
)
chosen = parser.parse_args().names

for name in chosen or sorted(CLAIMS):
    if name not in CLAIMS:
        parser.error(f"there is no claim {name!r}. Without a name, the command lists all claims")
    if not chosen:
        print(name, "-", CLAIMS[name].statement)
    for part in (CLAIMS[name].parts or [name]) if chosen else ():
        claim, measured = CLAIMS[part], CLAIMS[part].measure()
        print(
            f"{claim.statement}\n{scorecard.LOOKS[measured.verdict][0]} {measured.verdict}: "
            f"{measured.measured}"
        )
        print(
            f"{measured.words}\n" * bool(measured.words)
            + f"Rule: {claim.rule.text}\nNothing: {scorecard.of_nothing(claim, measured)}"
        )
        print(f"Ruler: {scorecard.calibration(claim)}")
