"""Chapter 3: its checks accept right answers of any form and say what is wrong with wrong ones."""

import math

import pytest
import torch

from helpers.chapter3 import checks
from helpers.checks import Wrong

WRONG = [
    (checks.total_variation, lambda p, q: (p - q).abs().sum(-1) / 2, "half what is expected"),
    (checks.total_variation, lambda p, q: (p - q).abs().sum(), "shape"),
    (checks.total_variation, lambda p, q: None, "returned nothing"),
    (checks.total_variation, lambda p: p, "raised TypeError"),
    (checks.total_variation, 5, "must be a function"),
    (checks.mean_change, lambda v: (v.mean() - v[-1]) / (len(v) + 1), r"wrong sign|expected"),
    (checks.half_length, lambda gap: math.exp(gap) + 1, "expected"),
    (checks.half_length, lambda gap: "many", "must return a number"),
    (checks.alternating, 0.9242343145, "not right"),
    (checks.alternating, ..., "still empty"),
    (checks.collision, lambda f, dtype: 256, "expected"),
    (checks.kernel, lambda r: 10 * torch.cos(math.pi / 2 * r), r"stay within \[-3, 3\]"),
    (checks.kernel, lambda r: torch.zeros_like(r), "all logits are 0"),
    (checks.kernel, lambda r: 3 * torch.exp(-r / 10), "must be at least 1"),
    (checks.kernel, lambda r: 3.0, "same shape"),
    (checks.window, lambda x, w: x.softmax(0), "expected"),
    (checks.window, lambda x, w: x[-w:].softmax(0), "shape"),
    (checks.adaptive, lambda x: x.softmax(-1), "expected"),
    (checks.seq_vcr, lambda x: x.new_tensor(math.nan), "NaN"),
    (checks.uniform_bound, lambda n0, b, e: n0, "too few"),
    (checks.uniform_bound, lambda n0, b, e: 10**12, "wasteful"),
    (checks.uniform_bound, lambda n0, b, e: 0, "at least n0"),
]


@pytest.mark.parametrize(("check", "answer", "message"), WRONG)
def test_wrong_answers_are_explained(check, answer, message):
    with pytest.raises(Wrong, match=message):
        check(answer)


def test_an_empty_function_is_not_yet_right():
    def empty(p, q):
        raise NotImplementedError

    with pytest.raises(Wrong, match="still empty"):
        checks.total_variation(empty)
    assert Wrong("so").__class__._render_traceback_(Wrong("so")) == ["Not yet: so"]


def test_right_answers_of_other_forms_pass(capsys):
    checks.total_variation(lambda p, q: torch.linalg.vector_norm(p - q, ord=1, dim=-1))
    checks.mean_change(lambda v: abs(float(torch.cat([v, v[-1:]]).mean() - v.mean())))
    checks.kernel(lambda r: torch.where(r % 4 == 0, 3.0, -3.0))
    assert capsys.readouterr().out.count("Right:") == 3
