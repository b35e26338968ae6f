"""Judge answers as a page does, or as a notebook does: a script, since both have a module named torch.

`python tests/in_page.py page STAGE` reads jobs from standard input, a JSON each line, and writes their verdicts; `STAGE` is
the folder of what a page ships. `notebook` judges with real torch. A job has `chapter` (its data, or a file of it), `source`
and `call`.
"""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    kind, *stage = sys.argv[1:]
    if kind == "page":
        sys.path[:0] = stage
    else:
        src = Path(__file__).parents[1] / "src"
        sys.path[:0] = [str(src / "course/exercises"), str(src)]
    import torch

    if kind == "page":
        assert stage[0] in torch.__file__
        import desk
    else:
        from page import desk
    from course import exercises as checks

    checks.PICTURES = False
    checks.SECONDS, checks.SEARCH = 60.0, 10.0
    begun = None
    for line in sys.stdin:
        job = json.loads(line)
        if job["chapter"] != begun:
            begun = job["chapter"]
            text = Path(begun).read_text()
            if kind == "page":
                desk.begin(text)
                checks.SECONDS, checks.SEARCH = 60.0, 10.0
                desk.SECONDS = 60.0
            else:
                desk.DATA.update(json.loads(text))
            desk.DATA["setup"] += "\n" + job.get("more", "")
        began = time.process_time()
        for each in vars(sys.modules.get(f"course.{desk.DATA['chapter']}.checks", sys)).values():
            if isinstance(each, checks.Exercise):
                each.guess = None
        found = json.loads(desk.check(job["source"], job["call"]))
        found["seconds"] = round(time.process_time() - began, 2)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
