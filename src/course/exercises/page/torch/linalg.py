"""Provide linear algebra for small matrices, by elimination and Jacobi rotations."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import numbers, operations
from torch.numbers import NotInThisPage, float32, float64, rounded
from torch.tensor import Tensor, finished, tensor

ROUNDS = 60  # the largest number of sweeps of Jacobi rotations, of which ten are enough


class LinAlgError(RuntimeError):
    """Report that a matrix cannot be inverted."""


class Eigen(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class Singular(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class Orthogonal(NamedTuple):
    Q: Tensor
    R: Tensor


def real_matrix(A: Tensor, name: str, square: bool = False) -> None:
    if A.dtype.kind < 2:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. "
            f"Got {operations.nice(A)}"
        )
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if square and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by "
            f"{A.shape[-1]} matrices"
        )


def each_matrix(A: Tensor, work: Any) -> list:
    """Apply a function to each matrix of a batch.

    If the function returns several parts, the result has one list over the batch for each part.
    """
    rows = A.reshape(-1, *A.shape[-2:]).tolist()
    return list(zip(*map(work, rows), strict=True))


def batch(values: Sequence, like: Tensor) -> Tensor:
    stacked = tensor(list(values), dtype=float64)
    return stacked.reshape([*like.shape[:-2], *stacked.shape[1:]]).to(like.dtype)


def symmetric_eigen(matrix: list[list[float]]) -> tuple[list, list]:
    """Return the eigenvalues of a symmetric matrix, the smallest first, and its eigenvectors.

    The eigenvectors are columns.
    """
    n = len(matrix)
    a = [[matrix[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    v = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(ROUNDS):
        off = sum(a[i][j] ** 2 for i in range(n) for j in range(i))
        if off <= 1e-32 * (sum(a[i][i] ** 2 for i in range(n)) + off) or off == 0:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if a[p][q] == 0:
                    continue
                angle = (a[q][q] - a[p][p]) / (2 * a[p][q])
                t = math.copysign(1, angle) / (abs(angle) + math.hypot(1, angle))
                c = 1 / math.hypot(1, t)
                s = t * c
                for row in (*a, *v):
                    row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
                for k in range(n):
                    a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]
    order = sorted(range(n), key=lambda k: a[k][k])
    return [a[k][k] for k in order], [[row[k] for k in order] for row in v]


def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    real_matrix(A, "linalg.eigh", True)
    values, vectors = each_matrix(A, symmetric_eigen)
    return Eigen(batch(values, A), batch(vectors, A))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    return eigh(A).eigenvalues


def singular(matrix: list[list[float]]) -> tuple[list, list, list]:
    """Return the singular value decomposition of a matrix as U, the values and V transposed.

    The largest value is first. We rotate the columns until they are orthogonal.
    """
    tall = len(matrix) >= len(matrix[0])
    columns = [list(c) for c in (zip(*matrix, strict=True) if tall else matrix)]
    n = len(columns)
    v = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(ROUNDS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                first, second = columns[p], columns[q]
                alpha, beta = sum(x * x for x in first), sum(x * x for x in second)
                gamma = sum(x * y for x, y in zip(first, second, strict=True))
                if abs(gamma) <= 1e-15 * math.sqrt(alpha * beta) or gamma == 0:
                    continue
                turned = True
                angle = (beta - alpha) / (2 * gamma)
                t = math.copysign(1, angle) / (abs(angle) + math.hypot(1, angle))
                c = 1 / math.hypot(1, t)
                s = c * t
                for rows in (columns, v):
                    rows[p], rows[q] = (
                        [c * x - s * y for x, y in zip(rows[p], rows[q], strict=True)],
                        [s * x + c * y for x, y in zip(rows[p], rows[q], strict=True)],
                    )
        if not turned:
            break
    sizes = [math.sqrt(sum(x * x for x in c)) for c in columns]
    order = sorted(range(n), key=lambda k: -sizes[k])
    values = [sizes[k] for k in order]
    u = completed(
        [[x / sizes[k] for x in columns[k]] if sizes[k] > 1e-300 else None for k in order]
    )
    turned_v = [v[k] for k in order]
    return (transposed(u), values, turned_v) if tall else (transposed(turned_v), values, u)


def transposed(rows: list) -> list:
    return [list(c) for c in zip(*rows, strict=True)]


def completed(rows: list) -> list:
    """Replace each None in a list of orthonormal rows by a further orthonormal row."""
    length = len(next(row for row in rows if row)) if any(rows) else len(rows)
    units = iter([[float(i == j) for j in range(length)] for i in range(length)])
    for k, row in enumerate(rows):
        while row is None:
            candidate = next(units)
            for known in filter(None, rows):
                part = sum(x * y for x, y in zip(candidate, known, strict=True))
                candidate = [x - part * y for x, y in zip(candidate, known, strict=True)]
            size = math.sqrt(sum(x * x for x in candidate))
            row = rows[k] = [x / size for x in candidate] if size > 1e-6 else None
    return rows


def svd(A: Tensor, full_matrices: bool = True) -> Singular:
    real_matrix(A, "linalg.svd")
    us, sizes, vs = each_matrix(A, singular)
    n, m = A.shape[-2:]
    if full_matrices and n > m:
        us = [transposed(completed([*transposed(u), *[None] * (n - m)])) for u in us]
    if full_matrices and m > n:
        vs = [completed([*v, *[None] * (m - n)]) for v in vs]
    return Singular(batch(us, A), batch(sizes, A), batch(vs, A))


def svdvals(A: Tensor) -> Tensor:
    return svd(A, False).S


def pinv(
    A: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    u, s, vh = svd(A.to(float64), False)
    epsilon = 2.220446049250313e-16 if A.dtype == float64 else 1.1920928955078125e-07
    cut = max((max(A.shape[-2:]) * epsilon if rtol is None else rtol) * float(s.max()), atol or 0.0)
    inverse = tensor([1 / x if x > cut else 0.0 for x in s.flat()], dtype=float64).reshape(s.shape)
    return finished((vh.mT * inverse.unsqueeze(-2) @ u.mT).to(A.dtype), A)


def eliminated(matrix: list[list[float]], right: list[list[float]]) -> tuple[list, float]:
    """Solve matrix @ x = right, and return the solution and the determinant."""
    n, rows, det = len(matrix), [[*a, *b] for a, b in zip(matrix, right, strict=True)], 1.0
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return [], 0.0
        if pivot != k:
            rows[k], rows[pivot], det = rows[pivot], rows[k], -det
        det *= rows[k][k]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [[x / rows[k][k] for x in rows[k][n:]] for k in range(n)], det


def solve(A: Tensor, B: Tensor) -> Tensor:
    real_matrix(A, "linalg.solve", True)
    if A.ndim > 2:
        raise NotInThisPage(limit="`torch.linalg.solve` takes only a single matrix")
    vector = B.ndim == 1
    solution, det = eliminated(A.tolist(), (B.unsqueeze(1) if vector else B).tolist())
    if det == 0:
        raise LinAlgError(
            "torch.linalg.solve: The solver failed because the input matrix is singular."
        )
    result = tensor(solution, dtype=float64).to(A.dtype)
    return finished(result.squeeze(1) if vector else result, A, B)


def inv(A: Tensor) -> Tensor:
    real_matrix(A, "linalg.inv", True)

    def work(rows: list) -> tuple[list]:
        inverse, det = eliminated(
            rows, [[float(i == j) for j in range(len(rows))] for i in range(len(rows))]
        )
        if det == 0:
            raise LinAlgError(
                "linalg.inv: The diagonal element 1 is zero, the inversion could not be "
                "completed because the input matrix is singular."
            )
        return (inverse,)

    return finished(batch(each_matrix(A, work)[0], A), A)


def det(A: Tensor) -> Tensor:
    real_matrix(A, "linalg.det", True)
    values = each_matrix(A, lambda rows: (eliminated(rows, [[]] * len(rows))[1],))[0]
    return tensor(list(values), dtype=A.dtype).reshape(A.shape[:-2])


def lstsq(A: Tensor, B: Tensor) -> Any:
    class Solution(NamedTuple):
        solution: Tensor

    return Solution(pinv(A) @ B)


def qr(A: Tensor, mode: str = "reduced") -> Orthogonal:
    """Compute a QR decomposition with Householder reflections, with the signs of LAPACK."""
    real_matrix(A, "linalg.qr")

    def work(rows: list) -> tuple[list, list]:
        n, m = len(rows), len(rows[0])
        k = min(n, m)
        r, q = [row[:] for row in rows], [[float(i == j) for j in range(n)] for i in range(n)]
        for c in range(k):
            x = [r[i][c] for i in range(c, n)]
            size = math.sqrt(sum(v * v for v in x))
            if size == 0 or len(x) == 1:
                continue
            x[0] += math.copysign(size, x[0])
            length = sum(v * v for v in x)
            for matrix, width in ((r, m), (q, n)):
                for j in range(width):
                    part = 2 * sum(x[i] * matrix[c + i][j] for i in range(len(x))) / length
                    for i in range(len(x)):
                        matrix[c + i][j] -= part * x[i]
        return [row[:k] for row in transposed(q)], [
            [v if i <= j else 0.0 for j, v in enumerate(row)] for i, row in enumerate(r[:k])
        ]

    if mode != "reduced":
        raise NotInThisPage(limit="`torch.linalg.qr` works only with the mode “reduced”")
    q, r = each_matrix(A, work)
    return Orthogonal(batch(q, A), batch(r, A))


def matrix_power(A: Tensor, n: int) -> Tensor:
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if n < 0:
        return matrix_power(inv(A), -n)
    power = operations.eye(A.shape[-1], dtype=A.dtype).expand(A.shape).clone()
    square = A
    while n:
        if n & 1:
            power = power @ square
        n >>= 1
        square = square @ square if n else square
    return power


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    parts = list(tensors)
    if len(parts) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(parts)}")
    product = parts[0]
    for factor in parts[1:]:
        product = product @ factor
    return product


def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return operations.norm(x, ord, dim, keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    real_matrix(A, "linalg.matrix_norm")
    if tuple(dim) != (-2, -1) or keepdim:
        raise NotInThisPage(
            limit="`torch.linalg.matrix_norm` works only along the last two axes, without `keepdim`"
        )
    if ord == "fro":
        return operations.norm(A, 2, (-2, -1))
    if ord in ("nuc", 2, -2):
        sizes = svdvals(A)
        if ord == "nuc":
            return sizes.sum(-1)
        return sizes.amax(-1) if ord == 2 else sizes.amin(-1)
    sums = A.abs().sum(-2 if abs(ord) == 1 else -1)
    return sums.amax(-1) if ord > 0 else sums.amin(-1)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    matrix = (dim is None and A.ndim == 2 and ord is not None) or (
        isinstance(dim, tuple) and len(dim) == 2
    )
    if matrix and ord is not None:
        return matrix_norm(A, ord)
    return operations.norm(A, 2 if ord is None else ord, dim, keepdim)


def matrix_rank(A: Tensor) -> Tensor:
    sizes = svdvals(A.to(float64))
    epsilon = 2.220446049250313e-16 if A.dtype == float64 else 1.1920928955078125e-07
    return (sizes > max(A.shape[-2:]) * epsilon * sizes.max()).sum(-1)


diagonal = operations.diagonal
cross_types = (float32, numbers, rounded)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.linalg.{name}`")
