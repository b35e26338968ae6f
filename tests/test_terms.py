"""A searcher finds the field's words on the page that is about them."""

import json
import re

import pytest
from conftest import ROOT

from book.pages import pages

TERMS = {
    "1-over-squashing/lesson": [
        "over-squashing", "message passing", "receptive field", "effective resistance",
        "rewiring", "Jacobian", "attention weight",
    ],
    "2-causal-attention/lesson": [
        "causal mask", "hidden state", "attention weight", "attention pattern", "residual",
    ],
    "2-causal-attention/sinks": ["attention sink", "sink score", "softmax"],
    "2-causal-attention/lab": ["attention sink", "knockout", "hidden state", "probe"],
    "3-representational-collapse/lesson": [
        "representational collapse", "bf16", "sliding window", "ALiBi", "readout",
        "softmax dispersion",
    ],
    "4-counting/lesson": ["hidden state", "length generalization", "tokenizer", "probe"],
    "5-rope-frequencies/lesson": ["RoPE", "NoPE", "YaRN", "induction head", "causal mask"],
    "6-differential-transformer/lesson": ["Differential Transformer", "attention", "noise"],
    "7-the-race/lesson": [
        "length generalization", "in-context retrieval", "NoPE", "ALiBi", "sliding window",
        "scalable softmax", "stick-breaking", "linear attention", "softmax dispersion",
        "hyperparameter",
    ],
    "refresher": ["query", "key", "value", "residual connection", "layer norm"],
}  # fmt: skip


@pytest.mark.site
@pytest.mark.parametrize("page", TERMS)
def test_a_page_has_the_words_one_searches_it_by(site, page):
    markup = (ROOT / f"_build/html/chapters/{page}.html").read_text()
    article = re.search(r"<article.*?</article>", markup, re.DOTALL)[0]
    text = " ".join(re.sub(r"<[^>]+>", "", article).split()).lower()
    assert [term for term in TERMS[page] if term.lower() not in text] == []


# Words that only this course used, and the field's word for each (chapters/voice.md). A pattern must not hit a normal use.
RETIRED = {
    r"\b(who|whom|is|are|least|most|worst)[ -]heard\b|\bwhom (does|do) \S+ hear\b": "influence",
    r"\bread-outs?\b": "readout, or probe",
    r"\bnumber types?\b": "floating-point format, or dtype",
    r"(?<!multilayer )\bperceptrons?\b": "MLP",
    r"\brulers?\b": "metric, or calibration",
    r"\b(random|untrained) twins?\b|\btwin of\b": "random-weights baseline",
    r"\bnulls\b": "null controls",
    r"\bsilenced\b|\bswitched off\b": "ablated",
    r"\basked at (the )?(\d|length)": "tested at",
    r"\b(goes?|went) far\b(?! (from|away|beyond|beneath))": "generalises",
    r"\b(linear|best|two|another|which|other) readers?\b(?! of)": "readout, or probe",
    r"\bpart exchanged\b|\b(are|is) exchanged\b": "swapped",
    r"\bequal to the bit\b": "identical bit for bit",
}
# A talk is retold in its author's words; the guide itself lists the retired words; the front page's stops are titles.
AS_THEY_ARE = {"talk.ipynb", "voice.md", "functions.md", "welcome.md", "try.md"}


def told_to_readers():
    """Yield the name and the prose of each page (with its cues), and of each table of hints and replies to wrong answers."""
    for path in pages():
        if path.name in AS_THEY_ARE:
            continue
        if path.suffix == ".ipynb":
            cells = json.loads(path.read_text())["cells"]
            yield (
                path,
                "\n".join(
                    "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
                ),
            )
        else:
            yield path, path.read_text()
    for path in sorted((ROOT / "src/course/exercises").glob("*.toml")):
        lines = (line.partition(" :: ")[2] for line in path.read_text().splitlines())
        yield path, "\n".join(line for line in lines if line)


@pytest.mark.parametrize("pattern", RETIRED)
def test_a_retired_word_is_on_no_page_and_in_no_hint(pattern):
    found = [
        f"{path.relative_to(ROOT)}: …{text[max(0, hit.start() - 40) : hit.end() + 40]!r}"
        for path, text in told_to_readers()
        for hit in re.finditer(pattern, text, re.I)
    ]
    assert found == [], f"write: {RETIRED[pattern]}"
