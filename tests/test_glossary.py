"""Glossary, symbols and refresher: terms are there, and each edge that a definition claims is computed."""

import json
import math
import re

import networkx as nx
import numpy as np
import pytest
import torch

from book import questions
from course.runs import evaluation

# the field's terms that lessons and questions use; each has an entry
TERMS = """query, key, value, head, attention weight, residual connection, residual stream, layer norm, RMSNorm, MLP,
embedding, output head, decoder, hidden state, influence, control, baseline, seed, entropy, dispersion, readout, copying,
recall, stick-breaking, linear attention, delta rule, context length, length generalization, significant bits, logit,
softmax, Jacobian, Laplacian, over-squashing, over-smoothing, representational collapse, attention sink, attention rollout,
probe, retrieval, RoPE, NoPE, APE, ALiBi, p-RoPE, bf16, fp16, fp32, effective resistance, spectral gap, rewiring,
scalable softmax, off-by-one softmax, differential attention, total variation, tokenizer, causal mask, sliding window,
FoSR, SDRF, GTR, NTK-aware scaling, hop, walk, skip connection, effective rank, Holm's correction, local layer,
softmax dispersion, hyperparameter"""


def entries(root) -> dict[str, str]:
    return dict(re.findall(r"^## (.+)\n\n(.+)$", (root / "chapters/glossary.md").read_text(), re.M))


@pytest.fixture
def glossary(root):
    return entries(root)


def test_every_term_has_an_entry_in_order(glossary):
    names = {name.lower() for heading in glossary for name in heading.split(", ")}
    assert [term for term in re.split(r",\s+", TERMS) if term.lower() not in names] == []
    assert [*glossary] == sorted(glossary, key=str.lower)


def test_terms_of_the_questions_are_in_the_glossary(glossary):
    """Words that questions set in italics, names in capitals, and every term of the list that they use."""
    text = " ".join(row["ask"] + " " + row["answer"] for row in questions.bank())
    plain = re.sub(r"\$[^$]*\$", "", text)
    known = " ".join(glossary).lower()
    names = set(re.findall(r"\b(?:[A-Z][a-z]?){2,}[A-Z]*\b|\b[a-z]+-RoPE\b|\bb?fp?\d\d\b", plain))
    assert [name for name in sorted(names) if name.lower().rstrip("s") not in known] == []


def test_every_symbol_of_the_questions_is_on_the_page_of_symbols(root):
    page = (root / "chapters/symbols.md").read_text()
    shown = " ".join(re.findall(r"^\|(.+?)\|", page, re.M)) + page
    known = {*re.findall(r"\\[a-zA-Z]+|[a-zA-Z]", " ".join(re.findall(r"\$([^$]+)\$", shown)))}
    functions = r"\\(?:[dt]?frac|sum|sqrt|binom|big|partial|lVert|rVert|lvert|rvert|cos|ln|tanh|pi|pm|cdot|approx|text\{\w+\}|overline|mathrm\{\w+\}|mathbf\{i\}|dots|ll|gg|le|ge|infty)(?![a-z])"
    for row in questions.bank():
        for formula in re.findall(r"\$([^$]+)\$", row["ask"] + " " + row["answer"]):
            used = {*re.findall(r"\\[a-zA-Z]+|[a-zA-Z]", re.sub(functions, " ", formula))} - {
                "e",
                "I",
            }
            assert used <= known, f"{row['id']}: {used - known} in {formula}"


# Edges -----------------------------------------------------------------------------------------------------


def test_laplacian_of_two_pieces_has_a_second_eigenvalue_of_zero(glossary):
    pieces = np.sort(np.linalg.eigvalsh(nx.laplacian_matrix(nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(5))).toarray()))  # fmt: skip
    assert abs(pieces[1]) < 1e-9
    assert min(value for value in pieces if value > 1e-9) == pytest.approx(5), (
        "the smallest positive one says nothing"
    )
    assert np.linalg.eigvalsh(nx.laplacian_matrix(nx.barbell_graph(5, 0)).toarray())[1] < 0.4
    assert "second smallest eigenvalue is 0 if the graph is disconnected" in glossary["Laplacian"]


def test_smoothed_states_weigh_inputs_by_degree(glossary):
    A = nx.to_numpy_array(nx.star_graph(4)) + np.eye(5)
    end = np.linalg.matrix_power(A / A.sum(1, keepdims=True), 500)
    assert np.allclose(end, end[0]), "all states alike"
    assert end[0, :2] == pytest.approx([0.385, 0.154], abs=0.001)
    assert "by the degree of its node" in glossary["Over-smoothing"]


def test_collapse_is_exact_behind_a_window_only(glossary):
    def last(n, window):
        x = np.array([0.0] + [1.0] * n)
        for _ in range(2):
            x = np.array([x[max(0, j - window + 1) : j + 1].mean() for j in range(n + 1)])
        return x[-1]

    assert last(9, 5) == last(10, 5) == 1
    assert last(8, 5) < 1
    assert last(30, 99) != last(31, 99)
    assert "they can be equal if the layers have a window" in glossary["Representational collapse"]


def test_expander_counts_sets_of_at_most_half(glossary):
    graph = nx.random_regular_graph(4, 20, seed=0)
    assert nx.cut_size(graph, graph.nodes) == 0, "all nodes together have no edge that leaves them"
    assert "at most half of its nodes" in glossary["Expander"]


def test_floating_point_formats_have_the_bits_and_ranges_claimed(glossary):
    for kind, bits in ((torch.bfloat16, 8), (torch.float16, 11), (torch.float32, 24)):
        whole = torch.tensor([2.0**bits, 2.0**bits + 1, 2.0**bits + 2], dtype=torch.float64)
        assert (whole.to(kind).double() == whole).tolist() == [True, False, True]
        assert torch.finfo(kind).eps == 2.0 ** (1 - bits)
    assert torch.finfo(torch.float16).max == 65_504
    assert (
        f"{torch.finfo(torch.bfloat16).max:.1e}"
        == "3.4e+38"
        == f"{torch.finfo(torch.float32).max:.1e}"
    )
    assert (
        "bf16 keeps 8 significant bits, fp16 keeps 11 and fp32 keeps 24"
        in glossary["bf16, fp16, fp32"]
    )
    assert "fp16 ends at 65,504" in glossary["bf16, fp16, fp32"]


@pytest.mark.parametrize("p", [5, 8, 11])
def test_significant_bits_have_the_steps_claimed(p, glossary, root):
    def rounded(x):
        fraction, power = math.frexp(x)
        return math.ldexp(round(math.ldexp(fraction, p)), power - p)

    numbers = sorted({rounded(x) for x in np.linspace(4, 8, 5 * 2**p)})
    assert np.allclose(np.diff(numbers), 2.0 ** (2 + 1 - p))
    assert all(rounded(n) == n for n in range(1, 2**p + 1))
    assert rounded(2**p + 1) != 2**p + 1
    assert rounded(1 - 2.0**-p) == 1 - 2.0**-p
    worst = max(abs(rounded(x) - x) / x for x in np.linspace(1, 2, 9999))
    assert worst <= 2.0**-p
    assert "all integers up to $2^p$ are exact" in glossary["Significant bits"]
    assert "off by at most a fraction $2^{-p}$" in (root / "chapters/refresher.md").read_text()


def test_jacobian_norm_is_the_largest_factor():
    J = np.diag([3.0, -4.0])
    changes = np.random.default_rng(0).standard_normal((500, 2))
    factors = np.linalg.norm(changes @ J.T, axis=1) / np.linalg.norm(changes, axis=1)
    assert factors.max() <= np.linalg.norm(J, 2) == 4
    assert factors.min() < 3.5


def test_entropy_is_zero_for_one_and_log_n_for_all(glossary):
    def entropy(row):
        row = row[row > 0]
        return float(-(row * row.log()).sum())

    assert entropy(torch.eye(7)[0]) == 0
    assert entropy(torch.full((7,), 1 / 7)) == pytest.approx(math.log(7))
    generator, B = torch.Generator().manual_seed(0), 1.5
    for n in (10, 100, 1000):
        rows = (2 * B * torch.rand(50, n, generator=generator) - B).softmax(-1)
        assert min(map(entropy, rows)) >= math.log(n) - 2 * B, "bounded logits: it has to grow"
    assert r"$\ln n$ if $n$ tokens share it equally" in glossary["Entropy, dispersion"]


def test_layer_norm_and_rms_norm_differ_by_the_mean(glossary):
    x = torch.tensor([5.0, 6.0, 7.0, 10.0])
    layer, rms = torch.nn.functional.layer_norm(x, (4,)), torch.nn.functional.rms_norm(x, (4,))
    assert float(layer.mean()) == pytest.approx(0, abs=1e-6)
    assert float(layer.var(correction=0)) == pytest.approx(1, abs=1e-4)
    assert torch.allclose(rms, x / x.square().mean().sqrt(), atol=1e-5)
    assert float(rms.mean()) > 0.5, "RMSNorm does not shift"
    assert "only divides" in glossary["Layer norm, RMSNorm"]


def test_stick_breaking_prefers_the_nearer_and_sums_to_at_most_one():
    left, weights = 1.0, []
    for _ in range(6):  # six keys of one logit, the nearest first
        weights.append(0.3 * left)
        left -= weights[-1]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) < 1


def test_delta_rule_replaces_what_a_key_holds():
    key, old, new = torch.tensor([0.6, 0.8]), torch.tensor([1.0, 2.0]), torch.tensor([-3.0, 5.0])
    added = torch.outer(old, key) + torch.outer(new, key)
    assert torch.allclose(added @ key, old + new), "linear attention adds"
    memory = torch.outer(old, key)
    memory = memory + torch.outer(new - memory @ key, key)
    assert torch.allclose(memory @ key, new), "the delta rule replaces"


def test_effective_rank_is_one_for_multiples_and_two_for_equal_values(root):
    multiples = torch.outer(torch.tensor([1.0, -2.0, 0.5, 0.5]), torch.randn(4))
    equal = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    assert evaluation.effective_rank(multiples[None]) == pytest.approx(1, abs=1e-6)
    assert evaluation.effective_rank(equal[None]) == pytest.approx(2)
    fractions = torch.tensor([0.75, 0.25])  # of σ, not of σ²
    wanted = math.exp(float(-(fractions * fractions.log()).sum()))
    assert evaluation.effective_rank((equal * torch.tensor([3.0, 1.0]))[None]) == pytest.approx(
        wanted
    )
    assert (
        r"the fractions $\sigma_k / \sum_m \sigma_m$"
        in (root / "chapters/refresher.md").read_text()
    )


def test_powers_at_a_spectral_radius_of_one_may_grow(root):
    J = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert max(abs(np.linalg.eigvals(J))) == 1
    assert np.linalg.norm(np.linalg.matrix_power(J, 100), 2) > 100
    assert np.linalg.norm(np.linalg.matrix_power(0.9 * J, 200), 2) < 1e-6
    assert "At exactly 1 it does not decide" in (root / "chapters/refresher.md").read_text()


def test_pseudo_inverse_inverts_vectors_that_sum_to_zero():
    graph = nx.lollipop_graph(4, 3)
    L = nx.laplacian_matrix(graph).toarray().astype(float)
    inverse, x = np.linalg.pinv(L), np.random.default_rng(0).standard_normal(7)
    x -= x.mean()
    assert np.allclose(L @ inverse @ x, x)
    assert not np.allclose(L @ inverse @ (x + 1), x + 1)
    u, v = 0, 6
    e = np.eye(7)[u] - np.eye(7)[v]
    assert e @ inverse @ e == pytest.approx(nx.resistance_distance(graph, u, v))


def test_random_vectors_have_a_cosine_of_one_over_root_d():
    a, b = torch.randn(2, 2000, 400, generator=torch.Generator().manual_seed(0))
    cosines = torch.nn.functional.cosine_similarity(a, b)
    assert float(cosines.square().mean().sqrt()) == pytest.approx(1 / 20, rel=0.05)


def test_units_and_intervals_of_the_refresher():
    assert 1 / math.log(2) == pytest.approx(1.44, abs=0.005)
    assert math.exp(math.log(20)) == pytest.approx(20)
    p, q = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert np.abs(p - q).sum() == 2, "total variation of chapter 3 goes up to 2"
    n, z = 12, 1.96
    assert z**2 / n / (1 + z**2 / n) == pytest.approx(0.24, abs=0.005), "Wilson, for 0 of 12"


def test_at_least_one_false_alarm_is_what_holm_bounds(glossary):
    rng = np.random.default_rng(0)
    p = np.sort(rng.random((20_000, 20)), axis=1)
    alarms = (p[:, 0] * 20 < 0.05).mean()  # Holm rejects something only if it rejects the smallest
    assert alarms == pytest.approx(0.05, abs=0.006)
    assert (p < 0.05).sum(1).mean() == pytest.approx(1, abs=0.05), "of twenty one, on average"
    assert "the chance of any false alarm small" in glossary["Holm's correction"]


def test_pages_link_to_entries_that_are_there(root, glossary):
    """A heading's anchor: words in lower case, joined by dashes."""
    anchors = {re.sub(r"[^\w\s-]", "", name.lower()).replace(" ", "-") for name in glossary}
    for path in [*root.glob("chapters/*.md"), *root.glob("chapters/*/*.ipynb")]:
        text = (
            path.read_text()
            if path.suffix == ".md"
            else json.dumps(json.loads(path.read_text()), ensure_ascii=False)
        )
        for anchor in re.findall(r"glossary\.md#([\w-]+)", text):
            assert anchor in anchors, f"{path.name}: {anchor}"
