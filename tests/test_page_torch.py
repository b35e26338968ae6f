"""The stand-in for torch of a page agrees with torch, function by function; what it lacks it says.

Both are modules named torch, so the stand-in runs in a process of its own that answers one expression a line.
"""

import json
import math
import subprocess
import sys

import pytest
import torch
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

SERVER = """
import json, math, sys
sys.path.insert(0, sys.argv[1])
import torch
def value(x):
    if isinstance(x, torch.Tensor):
        return ["tensor", str(x.dtype), list(x.shape), [float(v) if not isinstance(v, complex) else [v.real, v.imag] for v in x.flat()]]
    if isinstance(x, tuple | list):
        return ["list", [value(y) for y in x]]
    return ["plain", x]
for line in sys.stdin:
    found = []
    for code in json.loads(line):
        names = {"torch": torch, "math": math}
        try:
            exec(code, names)
            found.append(value(names["found"]))
        except Exception as error:
            found.append(["error", type(error).__name__, str(error)])
    print(json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def stand_in():
    """What the stand-in makes of pieces of code, each of which binds `found`."""
    folder = str(ROOT / "src/course/exercises/page")
    command = [sys.executable, "-S", "-I", "-c", SERVER, folder]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:

        def ask(*codes):
            process.stdin.write(json.dumps(codes) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def value(x):
    if isinstance(x, torch.Tensor):
        flat = (
            torch.view_as_real(x).flatten(0, -2).tolist()
            if x.is_complex()
            else x.flatten().double().tolist()
        )
        return ["tensor", str(x.dtype), list(x.shape), flat]
    if isinstance(x, tuple | list):
        return ["list", [value(y) for y in x]]
    return ["plain", x]


def real(code):
    names = {"torch": torch, "math": math}
    try:
        exec(code, names)
    except Exception as error:
        return ["error", type(error).__name__, str(error)]
    return value(names["found"])


def agree(one, other, near):
    if one[0] == "error" or other[0] == "error":
        return one[0] == other[0]
    if one[0] == "list" and other[0] == "list":
        return len(one[1]) == len(other[1]) and all(
            agree(a, b, near) for a, b in zip(one[1], other[1], strict=True)
        )
    if one[0] == "tensor" and other[0] == "tensor":
        return one[1:3] == other[1:3] and all(
            same(a, b, near) for a, b in zip(one[3], other[3], strict=True)
        )
    return one[0] == other[0] and same(one[1], other[1], near)


def same(a, b, near):
    if isinstance(a, list):
        return all(same(x, y, near) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (
            (math.isnan(a) and math.isnan(b))
            or a == b
            or math.isclose(a, b, rel_tol=near, abs_tol=near)
        )
    return a == b


NEAR = {"float64": 1e-11, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2, "int64": 0, "bool": 0}
ONE = """
x.exp() | x.log() | x.sqrt() | x.rsqrt() | x.tanh() | x.sigmoid() | x.sin() | x.cos() | x.abs() | x.square() | x.relu()
x.floor() | x.ceil() | x.round() | x.trunc() | x.sign() | -x | 1 / x | x ** 2 | x ** 0.5 | 2.0 ** x | x % 3 | x // 2 | x.expm1() | x.log1p()
x.erf() | x.isnan() | x.isfinite() | x.isinf() | x.logical_not() | x.reciprocal() | torch.special.entr(x) | x.lgamma()
x.sum() | x.sum(-1) | x.sum(0, keepdim=True) | x.sum((0, 1)) | x.mean() | x.mean(-1, keepdim=True) | x.prod() | x.std() | x.var(0, correction=0)
x.max() | x.min() | x.amax(-1) | x.amin(0) | x.argmax() | x.argmin(-1) | x.max(-1).values | x.min(0).indices | x.any() | x.all(-1)
x.cumsum(-1) | x.cumprod(0) | x.cummax(-1).values | x.diff() | x.softmax(-1) | x.softmax(0) | x.log_softmax(-1) | x.logsumexp(-1)
x.sort(-1).values | x.argsort(dim=-1, stable=True) | x.topk(1).values | x.median() | x.unique() | x.norm() | x.norm(dim=-1) | x.norm(p=1) | x.flip(-1)
x.roll(1, -1) | x.roll(1) | x.T | x.transpose(0, 1) | x.flatten() | x.unsqueeze(0) | x[None].squeeze(0) | x.reshape(-1) | x.view(-1) | x.tril() | x.triu(1) | x.tril(-1)
x.diagonal() | x.diag() | x.trace() | x.double() | x.float() | x.half() | x.bfloat16() | x.bool() | x.to(torch.float64) | x.clone() | x.repeat(2, 1) | x.repeat_interleave(2, 0)
x[0] | x[:, 0] | x[..., -1] | x[1:] | x[:, ::2] | x[None, :, 0] | x[x > 0] | x[[1, 0]] | x[torch.tensor([0, 1, 1])] | x[torch.arange(2), torch.arange(2)] | x[:, [0, 1]]
x.clamp(min=0) | x.clamp(-1, 1) | x.nan_to_num() | x.nonzero() | (x > 0).nonzero() | x.count_nonzero() | x.unbind(0) | x.chunk(2, -1) | x.split(1) | x.tolist() | x.numel()
torch.zeros_like(x) | torch.ones_like(x) | torch.full_like(x, 2) | torch.cat([x, x], 1) | torch.stack([x, x], -1) | torch.where(x > 0, x, 0.0) | x.masked_fill(x > 0, -math.inf)
x @ x.T | torch.outer(x[0], x[1]) | x[0] @ x[1] | x @ x[0] | torch.einsum("ij,kj->ik", x, x) | torch.cov(x) | torch.corrcoef(x) | torch.cdist(x, x, p=1) | torch.nn.functional.pad(x, (1, 0))
torch.nn.functional.normalize(x, dim=-1) | torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5) | torch.nn.functional.layer_norm(x, x.shape[-1:]) | torch.nn.functional.gelu(x)
torch.isclose(x, x + 1e-9) | torch.allclose(x, x) | torch.equal(x, x) | x.unflatten(0, (1, 2)) | x.expand(2, 2, 3) | x.movedim(0, 1) | x.isneginf() | x.frexp() | torch.frexp(x)
torch.maximum(x, x.flip(0)) | torch.logaddexp(x, -x) | x.atan2(x + 1) | torch.quantile(x, 0.3) | x.gather(1, torch.tensor([[0], [1]])) | x.index_select(1, torch.tensor([1]))
"""
TWO = "x + y | x - y | x * y | x / y | x == y | x < y | x >= y | torch.maximum(x, y) | torch.minimum(x, y) | x + y[0] | x * y[:, :1] | torch.where(x > y, x, y) | x % y"
MAKE = """
torch.arange(5) | torch.arange(1, 6, 2) | torch.arange(0, 1, 0.25) | torch.arange(3.0) | torch.linspace(0, 1, 5) | torch.logspace(0, 2, 3) | torch.eye(3) | torch.eye(2, 3) | torch.ones(2, 3)
torch.zeros(2, dtype=torch.int64) | torch.full((2, 2), -math.inf) | torch.full((2,), 3) | torch.tensor([1, 2]) | torch.tensor([True]) | torch.tensor([1, 2.5]) | torch.tensor([[1.0], [2.0]])
torch.tensor(0.1) | torch.tensor(0.1).double() | torch.tensor(257.0).bfloat16() | torch.tensor(70000.0).half() | torch.tensor(2**24 + 1).float() | torch.ones(3).tril() if False else torch.ones(3, 3).tril()
torch.polar(torch.ones(2), torch.tensor([0.0, 1.0])) | torch.view_as_real(torch.view_as_complex(torch.tensor([[1.0, 2.0]]))) | torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
torch.tril_indices(3, 3) | torch.combinations(torch.arange(4)) | torch.bincount(torch.tensor([0, 2, 2])) | torch.kron(torch.eye(2), torch.ones(1, 2)) | torch.sinc(torch.tensor([0.0, 0.5]))
torch.finfo(torch.bfloat16).eps | torch.heaviside(torch.tensor([0.0, 2.0]), torch.tensor(0.5)) | torch.searchsorted(torch.tensor([1.0, 3.0]), torch.tensor([2.0])) | torch.diag(torch.ones(2), 1)
"""
LINEAR = """
torch.linalg.inv(s) | torch.linalg.det(s) | torch.linalg.solve(s, x[:, 0]) | torch.linalg.eigvalsh(s + s.T) | torch.linalg.svdvals(x) | torch.linalg.pinv(x) | torch.linalg.matrix_power(s, 3)
torch.linalg.matrix_norm(x) | torch.linalg.matrix_norm(x, ord=2) | torch.linalg.matrix_norm(x, ord="nuc") | torch.linalg.vector_norm(x, ord=1) | torch.linalg.multi_dot([s, s, x])
torch.linalg.qr(x).Q.abs() | torch.linalg.qr(x).R.abs() | torch.linalg.norm(x, ord=2) | torch.linalg.matrix_rank(s)
(lambda e: e.eigenvectors * e.eigenvalues @ e.eigenvectors.T)(torch.linalg.eigh(s + s.T)) | (lambda u, v, w: u @ torch.diag(v) @ w)(*torch.linalg.svd(x, full_matrices=False))
torch.autograd.functional.jacobian(lambda y: (y @ y.T).tanh(), x) | torch.func.jacrev(lambda y: y.softmax(-1))(x)
"""
CHANGE = """
x[0] = 0 | x[:, 1:] = y[:, 1:] | x[x > 0] = -1 | x[[0, 1], [1, 0]] = 9 | x += y | x *= 2 | x[0] += 1 | x.diagonal().mul_(0) | x.fill_diagonal_(3) | x[1].add_(1) | x.clamp_(min=0) | x.T[0] = 7
"""


def pieces(text):
    return [
        each.strip()
        for line in text.strip().splitlines()
        for each in line.split(" | ")
        if each.strip()
    ]


def matrix(type_, low=-4.0, high=4.0):
    numbers = (
        st.integers(-4, 4)
        if type_ == "int64"
        else st.booleans()
        if type_ == "bool"
        else st.floats(low, high).map(lambda v: round(v, 3))
    )
    return st.lists(numbers, min_size=6, max_size=6).map(
        lambda v: f"torch.tensor([{v[:3]}, {v[3:]}], dtype=torch.{type_})"
    )


@pytest.mark.parametrize("type_", ["float64", "float32", "bfloat16", "int64", "bool"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_functions_of_one_tensor_agree_with_torch(stand_in, type_, data):
    """Whatever torch does not do for a type may work here; what is lacking here says so."""
    x = data.draw(matrix(type_))
    codes = {each: f"x = {x}\nfound = {each}" for each in pieces(ONE)}
    for (expression, code), ours in zip(codes.items(), stand_in(*codes.values()), strict=True):
        theirs = real(code)
        if theirs[0] == "error" and type_ in ("int64", "bool", "bfloat16"):
            continue
        if ours[0] == "error" and ours[1] == "NotInThisPage":
            continue
        assert agree(theirs, ours, near(type_, expression)), (code, theirs, ours)


def near(type_, expression):
    by_name = 2e-3 if ".half" in expression else 2e-2 if "bfloat" in expression else 0
    return max(NEAR[type_], by_name, 2e-6 if type_ in ("int64", "bool") else 0)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_functions_of_two_tensors_have_torchs_type_and_value(stand_in, data):
    types = st.sampled_from(["float64", "float32", "int64", "bool", "float16", "bfloat16"])
    one, other = data.draw(types), data.draw(types)
    make = f"x = {data.draw(matrix(one))}\ny = {data.draw(matrix(other))}\n"
    codes = [f"{make}found = {each}" for each in pieces(TWO)]
    for code, ours in zip(codes, stand_in(*codes), strict=True):
        theirs = real(code)
        if theirs[0] != "error":
            assert agree(theirs, ours, max(NEAR[one], NEAR[other], 2e-6)), (code, theirs, ours)


def test_tensors_are_made_as_in_torch(stand_in):
    codes = [f"found = {each}" for each in pieces(MAKE)]
    for code, ours in zip(codes, stand_in(*codes), strict=True):
        assert agree(real(code), ours, 2e-6), (code, real(code), ours)


@settings(max_examples=15, deadline=None)
@given(x=matrix("float64", 0.5, 3.0))
def test_linear_algebra_agrees_with_torch(stand_in, x):
    make = f"x = {x} + torch.tensor([[2.0, 0, 0], [0, 3.0, 0]])\ns = torch.eye(2).double() * 4 + x[:, :2]\n"
    codes = [f"{make}found = {each}" for each in pieces(LINEAR)]
    for code, ours in zip(codes, stand_in(*codes), strict=True):
        assert agree(real(code), ours, 1e-7), (code, real(code), ours)


@pytest.mark.parametrize("type_", ["float64", "float32", "int64"])
def test_a_change_in_place_reaches_what_torch_changes(stand_in, type_):
    make = f"base = torch.arange(12).reshape(3, 4).to(torch.{type_}) - 4\nx = base[:2, :3]\ny = x.clone() + 1\n"
    codes = [f"{make}{each}\nfound = base" for each in pieces(CHANGE)]
    for code, ours in zip(codes, stand_in(*codes), strict=True):
        assert agree(real(code), ours, 0), (code, real(code), ours)


@pytest.mark.parametrize("code", [
    "torch.ones(2, 3) + torch.ones(2)", "torch.ones(2, 3) @ torch.ones(2, 3)", "torch.ones(2)[5]", "torch.ones(2, 2)[0, 0, 0]",
    "torch.ones(2).view(3)", "torch.stack([torch.ones(2), torch.ones(3)])", "bool(torch.ones(2))", "torch.ones(2).item()",
    "torch.ones(2).sum(3)", "torch.arange(3).mean()", "torch.ones(2) @ torch.ones(3)",
])  # fmt: skip
def test_an_error_has_torchs_kind_and_words(stand_in, code):
    """A verdict shows both."""
    (ours,) = stand_in(f"found = {code}")
    assert ours == real(f"found = {code}")


@pytest.mark.parametrize("code", [
    "torch.foo", "torch.ones(2).backward()", "torch.tensor(1.0, requires_grad=True)", "torch.nn.Linear(2, 2)", "torch.ones(2).numpy()",
    "torch.linalg.eigvals(torch.eye(2))", "torch.ones(2).scatter_(0, 1, 2)", "torch.fft.fft(torch.ones(2))",
])  # fmt: skip
def test_what_is_lacking_is_said(stand_in, code):
    ((kind, name, text),) = stand_in(f"found = {code}")
    assert (kind, name) == ("error", "NotInThisPage")
    assert "the small stand-in for PyTorch" in text
