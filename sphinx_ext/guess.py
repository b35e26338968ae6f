"""The `{guess}` directive: a row of ones to be counted by the reader, and what five models answered, on one line."""

import csv
import html
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

ONES, LEFT, WIDTH, ROW, TOP = 314, 150, 560, 34, 46  # sizes in pixels
LEAST, MOST = 100, 540
WAYS = {"ones": "111111…", "comma_separated": "1,1,1,…", "groups_of_five": "11111 11111 …"}
SHAPES = {"ones": "●", "comma_separated": "◆", "groups_of_five": "■"}
SCRIPT = """<script>{
const field = document.querySelector(".guess input"), mark = document.querySelector(".guess .yours");
field.addEventListener("input", () => {
  const at = Math.max(LEAST, Math.min(MOST, Number(field.value)));
  mark.toggleAttribute("hidden", !field.value);
  mark.setAttribute("transform", `translate(${LEFT + (at - LEAST) / (MOST - LEAST) * WIDTH} 0)`);
  mark.querySelector("text").textContent = `you: ${field.value}`;
  document.querySelector(".guess details").open = Boolean(field.value);
});
}</script>"""
for name, size in (("LEAST", LEAST), ("MOST", MOST), ("LEFT", LEFT), ("WIDTH", WIDTH)):
    SCRIPT = SCRIPT.replace(name, str(size))


def place(value: float) -> float:
    return LEFT + (value - LEAST) / (MOST - LEAST) * WIDTH


def picture(rows: list[dict[str, str]]) -> str:
    """Every answer on a line of numbers, a row a model."""
    high = TOP + ROW * len(rows)
    marks, said = [], []
    for k, row in enumerate(rows):
        y = TOP + ROW * (k + 0.5)
        marks.append(f'<text x="0" y="{y + 5}">{html.escape(row["model"])}</text>')
        marks.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" opacity=".2"/>')
        given = {way: int(row[way]) for way in WAYS if row[way]}
        said.append(f"{row['model']}: {', '.join(map(str, given.values()))}")
        for way, value in given.items():
            marks.append(
                f'<text x="{place(value):.0f}" y="{y + 7}" text-anchor="middle" class="{way}">{SHAPES[way]}'
                f"<title>{html.escape(row['model'])}, {WAYS[way]}: {value}</title></text>"
            )
    ticks = "".join(
        f'<text x="{place(x):.0f}" y="{high + 20}" text-anchor="middle">{x}</text>' for x in range(LEAST, MOST, 100)
    )
    label = html.escape(f"Answers of five models; {ONES} is right. {'; '.join(said)}.")
    return (
        f'<svg viewBox="0 0 {LEFT + WIDTH + 20} {high + 44}" role="img" aria-label="{label}">'
        f'<line class="right" x1="{place(ONES):.0f}" x2="{place(ONES):.0f}" y1="{TOP - 12}" y2="{high}"/>'
        f'<text class="right" x="{place(ONES):.0f}" y="16" text-anchor="middle">right: {ONES}</text>{"".join(marks)}{ticks}'
        f'<g class="yours" hidden><line y1="{TOP - 12}" y2="{high}"/><text y="{high + 40}" text-anchor="middle"></text></g></svg>'
    )


class Guess(Directive):
    def run(self):
        table = Path(self.state.document.settings.env.srcdir) / "data/reported/counting_314_ones.csv"
        lines = [line for line in table.read_text().splitlines() if not line.startswith("#")]
        rows = list(csv.DictReader(lines))
        answers = [int(row[way]) for row in rows for way in WAYS if row[way]]
        right = sum(answer == ONES for answer in answers)
        legend = ", ".join(f'<span class="{way}">{SHAPES[way]}</span> {text}' for way, text in WAYS.items())
        text = (
            f'<div class="guess"><p class="ones">{"1" * ONES}</p>'
            '<p><label>How many ones are these? Your guess, without counting: <input type="number" min="1" max="999"></label></p>'
            f"<details><summary>What five language models answered</summary>{picture(rows)}"
            f"<p>{right} of {len(answers)} answers are right. The ones were written in three ways: {legend}. One answer each, "
            "as reported in the talk from which this course grew: an anecdote, and a question.</p></details></div>"
        )
        return [nodes.raw("", text + SCRIPT, format="html")]


def setup(app):
    app.add_directive("guess", Guess)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
