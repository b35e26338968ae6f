"""Provide the directive `{guess}`, which asks the reader to count a row of ones.

It then shows the answers of five models on one line.
"""

import html

from docutils import nodes
from docutils.parsers.rst import Directive

from helpers import words

ONES, LEFT, WIDTH, ROW, TOP = 314, 150, 560, 44, 46  # sizes in pixels
LEAST, MOST = 100, 540
SHAPES = {
    "o": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0",
    "s": "M-5.5 -5.5h11v11h-11z",
    "^": "M0 -7l7 12h-14z",
}
ASK = "How many ones are these? Your guess, without counting:"
ANSWERED = "What five language models answered"
RIGHT = "answers are right. The ones were written in three ways:"
SOURCE = (
    ". The talk from which this course grew reports one answer for each. This is an anecdote "
    "and not evidence, but it raises a good question."
)
SCRIPT = """<script>{
const field = document.querySelector(".guess input");
const mark = document.querySelector(".guess .yours");
field.addEventListener("change", () => {
  const at = Math.max(LEAST, Math.min(MOST, Number(field.value)));
  mark.toggleAttribute("hidden", !field.value);
  mark.setAttribute("transform", `translate(${LEFT + (at - LEAST) / (MOST - LEAST) * WIDTH} 0)`);
  mark.querySelector("text").textContent = `you: ${field.value}`;
});
}</script>"""
for name, size in (("LEAST", LEAST), ("MOST", MOST), ("LEFT", LEFT), ("WIDTH", WIDTH)):
    SCRIPT = SCRIPT.replace(name, str(size))


def place(value: float) -> float:
    """Return the horizontal position of a value in the drawing, in pixels."""
    return LEFT + (value - LEAST) / (MOST - LEAST) * WIDTH


def mark(way: str, x: float, y: float) -> str:
    """Return the mark for a way of writing the ones, as the figures of chapter 4 draw it."""
    from course.chapter4 import figures

    shape, colour, _ = figures.WRITTEN[way]
    return (
        f'<path class="mark" d="{SHAPES[shape]}" transform="translate({x:.0f} {y:.1f})" '
        f'stroke="{colour}">'
    )


def picture(table) -> str:
    """Return a picture of all answers on a number line, with one row per model."""
    from course.chapter4 import figures, measures

    models = list(dict.fromkeys(table.model))
    high = TOP + ROW * len(models)
    marks, sentences = [], []
    for k, model in enumerate(models):
        y = TOP + ROW * (k + 0.5)
        marks.append(f'<text x="0" y="{y + 5}">{html.escape(model)}</text>')
        marks.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" opacity=".2"/>')
        answers = table[(table.model == model) & table.answer.notna()]
        sentences.append(f"{model}: {', '.join(str(int(answer)) for answer in answers.answer)}")
        for way, answer in zip(answers.writing, answers.answer, strict=True):
            title = html.escape(
                f"{model}, {words.translated(measures.WRITINGS[way])}: {int(answer)}"
            )
            above = ROW * figures.WRITTEN[way][2] * 1.4
            marks.append(f"{mark(way, place(answer), y - above)}<title>{title}</title></path>")
    ticks = "".join(
        f'<text x="{place(x):.0f}" y="{high + 20}" text-anchor="middle">{x}</text>'
        for x in range(LEAST, MOST, 100)
    )
    label = html.escape(
        f"{words.translated(f'Answers of five models; {ONES} is right:')} {'; '.join(sentences)}."
    )
    return (
        f'<svg viewBox="0 0 {LEFT + WIDTH + 20} {high + 44}" role="img" aria-label="{label}">'
        f'<line class="right" x1="{place(ONES):.0f}" x2="{place(ONES):.0f}" y1="{TOP - 12}" '
        f'y2="{high}"/>'
        f'<text class="right" x="{place(ONES):.0f}" y="16" '
        f'text-anchor="middle">{words.translated(f"right: {ONES}")}</text>{"".join(marks)}{ticks}'
        f'<g class="yours" hidden><line y1="{TOP - 12}" y2="{high}"/><text y="{high + 40}" '
        'text-anchor="middle"></text></g></svg>'
    )


class Guess(Directive):
    """Ask the reader for a count and show the answers of models, with the directive `{guess}`."""

    def run(self):
        from course.chapter4 import measures

        table = measures.answers()
        answers = table.answer.dropna()
        right = int((answers == ONES).sum())
        legend = "; ".join(
            (
                '<svg class="key" viewBox="-8 -8 16 16" '
                f'aria-hidden="true">{mark(way, 0, 0)}</path></svg> {words.translated(text)}'
            )
            for way, text in measures.WRITINGS.items()
        )
        text = (
            f'<div class="guess"><p class="ones">{"1" * ONES}</p>'
            f"<p><label>{words.translated(ASK)} "
            '<input type="number" min="1" max="999"></label></p>'
            f"<details><summary>{words.translated(ANSWERED)}</summary>{picture(table)}<p>"
            f"{words.translated(f'{right} of {len(answers)} {RIGHT}')} {legend}"
            f"{words.translated(SOURCE)}"
            "</p></details></div>"
        )
        return [
            nodes.raw("", text + SCRIPT.replace("you: ", words.translated("you: ")), format="html")
        ]


def setup(app):
    app.add_directive("guess", Guess)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
