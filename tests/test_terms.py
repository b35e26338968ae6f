"""A searcher finds the field's words on the page that is about them."""

import re

import pytest
from conftest import ROOT

TERMS = {
    "1-over-squashing/lesson": [
        "over-squashing", "message passing", "receptive field", "effective resistance",
        "rewiring", "Jacobian", "attention weight",
    ],
    "2-causal-attention/lesson": [
        "causal mask", "hidden state", "attention weight", "attention pattern", "residual",
    ],
    "2-causal-attention/lab": ["attention sink", "knockout", "hidden state", "probe"],
    "3-representational-collapse/lesson": [
        "representational collapse", "bf16", "sliding window", "ALiBi", "readout",
    ],
    "4-counting/lesson": ["hidden state", "length generalization", "tokenizer", "probe"],
    "5-rope-frequencies/lesson": ["RoPE", "NoPE", "YaRN", "induction head", "causal mask"],
    "6-differential-transformer/lesson": ["Differential Transformer", "attention", "noise"],
    "7-the-race/lesson": [
        "length generalization", "in-context retrieval", "NoPE", "ALiBi", "sliding window",
        "scalable softmax", "stick-breaking", "linear attention", "dispersion",
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
