"""Seconds and bytes of a report, by section: what `course.report` writes into its JSON, as a table.

python benchmarks/report.py                       the embedded default with the labs' settings
python benchmarks/report.py --plan short          the short one
python benchmarks/report.py --read FILE.json      of a report that was made before

Seconds are of the clock and of the processor, so that a busy machine can be told. Bytes are the
most that the process held inside a section, or the accelerator; the model itself is among them.
"""

import argparse
import tempfile
from pathlib import Path

from course import report
from helpers import models


def table(found: dict) -> str:
    """A row a section, and what they add up to."""
    lines = [f"{'section':12}{'plan':>8}{'seconds':>9}{'processor':>11}{'MB':>8}  status"]
    for name, part in found["sections"].items():
        lines.append(
            f"{name:12}{part['plan']:>8}{part['seconds']:9.1f}"
            f"{part.get('processor_seconds', float('nan')):11.1f}"
            f"{part['bytes'] / 1e6:8.0f}  {part['status']}"
        )
    work = sum(part.get("processor_seconds", 0.0) for part in found["sections"].values())
    lines.append(
        f"{'all':12}{found['settings']['plan']:>8}{found['seconds']:9.1f}{work:11.1f}"
        f"{found['peak_bytes'] / 1e6:8.0f}"
    )
    lines.append(f"loading, hashing: {found['load_and_estimate_seconds']:.1f} s")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=models.DEFAULT)
    parser.add_argument("--plan")
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--read", type=Path)
    given = parser.parse_args()
    if given.read:
        print(table(report.read(given.read)))
        return
    with tempfile.TemporaryDirectory() as folder:
        files = report.run(
            given.model, folder, device=given.device, dtype=given.dtype, plan=given.plan, say=print
        )
        print(table(report.read(files.numbers)))


if __name__ == "__main__":
    main()
