"""Write the report on a reader's own decoder, from "Build it" or "Train it here".

The report shows eight measurements next to those of the reference decoder. They are the
measurements of the page "A page of your own", repeated on the file. The eighth is the decoder's
result in the benchmark. It needs training, so we read it from the notes next to the file.
"""

import datetime
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from course.build.files import stored, writable, write
from course.exercises.workshop import parts
from course.exercises.workshop.measured import measured
from course.report import page, store
from course.report.subject import versions
from course.runs import comparison
from helpers import style, widget

WHAT = "a decoder of one's own"


def takes(name: str) -> bool:
    """Return whether a name is a weights file without the model card of a course checkpoint.

    Such a file contains a reader's own decoder.
    """
    path = Path(name).expanduser()
    card = path.with_suffix(".json")
    return (
        path.suffix == ".safetensors"
        and path.is_file()
        and (not card.exists() or stored(card).get("what") == WHAT)
    )


def alone(names: Sequence[str], options: object) -> None:
    """Raise an error for options that do not apply to a reader's own decoder.

    Raises:
        ValueError: if one of the names is a reader's own decoder and an option is set that its
            report does not have.
    """
    if options and any(map(takes, names)):
        raise ValueError(
            f"{WHAT} is always measured in fp32 on the CPU, next to the course's "
            "reference decoder. Leave out --device, --dtype, --plan, --only and --compare"
        )


def run(name: str, where: Path, say: Callable[[str], None]) -> tuple[Path, Path]:
    """Measure a reader's decoder, write the page and the JSON file, and return the two paths.

    Raises:
        ValueError: if the file is not a decoder from "Build it", its notes cannot be read, or
            another report is in the way.
        OSError: if the folder cannot be written.
    """
    path, start = Path(name).expanduser(), time.perf_counter()
    model, digest = parts.read(path), hashlib.sha256(path.read_bytes()).hexdigest()
    notes, ours = parts.notes(path.parent / parts.NOTES), parts.notes()
    for tag in ("", f"-{digest[:6]}"):
        files = [
            writable(where / f"{store.slug(path.stem)}{tag}.{kind}") for kind in ("html", "json")
        ]
        if not files[1].exists() or stored(files[1]).get("sha256") == digest:
            break
    else:
        raise ValueError(f"{files[1].name} is another report. Choose another folder with --out")
    race = comparison.table().query("entry == 'NoPE'").groupby("task").score_128.mean()
    ours["7"] = {f"{task} at 128": float(race[task]) for task in ("retrieval", "last")}
    row = {key: value for key, value in notes.get("7", {}).items() if key in ours["7"]}
    numbers = measured(model) | ({"7": row} if row else {})
    report = {
        "what": WHAT,
        "file": path.name,
        "sha256": digest,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "layers": len(model.blocks),
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(time.perf_counter() - start, 1),
        "versions": versions(),
        "measured": {
            chapter: {key: round(value, 3) for key, value in values.items()}
            for chapter, values in numbers.items()
        },
        "course": {
            chapter: {key: ours[chapter][key] for key in values}
            for chapter, values in numbers.items()
        },
        "sentences": {
            chapter: note["sentence"]
            for chapter, note in sorted(notes.items())
            if "sentence" in note
        },
    }
    write(files[1], json.dumps(report, indent=1, ensure_ascii=False) + "\n", "sections")
    write(files[0], html(report), "sections")
    say(f"{files[0]}: {len(numbers)} of 8 measurements, {report['seconds']:.0f} s")
    return files[0], files[1]


def html(report: dict) -> str:
    """Write the page that shows the JSON of a reader's decoder."""
    names = [(chapter, key) for chapter, values in report["measured"].items() for key in values]
    pairs = [[report[of][chapter][key] for of in ("measured", "course")] for chapter, key in names]
    frame = pd.DataFrame(
        pairs, [f"{chapter}  {key}" for chapter, key in names], ["this one", "the course's own"]
    )
    drawn = widget.image(
        style.dots(frame, "fraction or cosine").figure,
        f"{len(pairs)} numbers of this decoder, next to the numbers of the reference decoder",
    )
    missing = (
        ""
        if "7" in report["measured"]
        else " This decoder has no row in the race yet. The workshop makes this row."
    )
    caption = (
        "The number before a name is the chapter, where 0 is Build it. This decoder has "
        f"{report['parameters']:,} parameters in {report['layers']} layers. We compare one run "
        "with one run, and in the race with the mean of fifteen runs. So treat a difference as a "
        f"question. The page of the chapter says how to measure again.{missing}"
    )
    rows = [
        (name, [f"{value:.2f}" for value in pair])
        for name, pair in zip(frame.index, pairs, strict=True)
    ]
    sentences = Markup("").join(
        Markup("<p>{}. {}{}</p>").format(*note, " (Not finished.)" * parts.unfinished(note[1]))
        for note in report["sentences"].items()
    )
    how = Markup(
        "<h2>How it was made</h2><p><code>python -m course.report {}</code> ({}), {}, {:.0f} "
        "s; {}.</p>"
    ).format(
        report["file"],
        report["sha256"][:6],
        report["made"],
        report["seconds"],
        ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
    )
    body = page.HTML.figure(
        f"{len(report['measured'])} of eight measurements", Markup(drawn), caption
    ) + page.HTML.table(list(frame), rows, "The numbers")
    body += (Markup("<h2>Your sentences</h2>") + sentences if sentences else Markup("")) + how
    return page.HTML.document(f"{report['file']}: {WHAT}", body, page.STYLE).lstrip()
