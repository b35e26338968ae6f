"""Implement a tensor that stores its numbers in a flat Python list.

Shapes, views, broadcasting, indices and reductions are as in torch.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import numbers
from torch.numbers import NotInThisPage, dtype, float32, float64, int64, promoted, rounded

AXES = ("dim", "axis")  # two names of the same argument
GRADIENTS = "only `torch.autograd.functional.jacobian` computes derivatives, by differences"
watchers: list[Callable] = []  # functions that are called with every result, set by torch.overrides


class Size(tuple):
    """Hold a shape."""

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        return math.prod(self)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor that is stored row by row in a flat list."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


class Tensor:
    """Hold numbers of one dtype in a list, with a shape and strides. Views share the list."""

    __slots__ = ("dtype", "grad", "offset", "shape", "steps", "storage")
    __hash__ = object.__hash__
    requires_grad = False
    is_meta = is_quantized = is_sparse = is_nested = False
    is_leaf = True
    device = numbers.device("cpu")
    layout = "strided"

    def __init__(
        self,
        storage: list,
        shape: Sequence[int],
        type_: dtype,
        steps: Sequence[int] | None = None,
        offset: int = 0,
    ):
        self.storage, self.shape, self.dtype, self.offset, self.grad = (
            storage,
            Size(shape),
            type_,
            offset,
            None,
        )
        self.steps = contiguous(shape) if steps is None else tuple(steps)

    def places(self) -> Sequence[int]:
        """Return the positions of all entries in the list, row by row."""
        if self.steps == contiguous(self.shape):
            return range(self.offset, self.offset + math.prod(self.shape))
        places = [self.offset]
        for size, step in zip(self.shape, self.steps, strict=True):
            places = [at + k * step for at in places for k in range(size)]
        return places

    def flat(self) -> list:
        """Return all entries as a new list."""
        places = self.places()
        if isinstance(places, range):
            return self.storage[places.start : places.stop]
        return [self.storage[k] for k in places]

    def put(self, values: Sequence) -> "Tensor":
        """Write these numbers into the entries of the tensor.

        If the tensor is a view, its base changes, too.
        """
        for place, value in zip(self.places(), rounded(values, self.dtype), strict=True):
            self.storage[place] = value
        return self

    def view_of(
        self, shape: Sequence[int], steps: Sequence[int], offset: int | None = None
    ) -> "Tensor":
        return Tensor(
            self.storage, shape, self.dtype, steps, self.offset if offset is None else offset
        )

    # shape

    ndim = property(lambda self: len(self.shape))
    is_cuda = False

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[axis(self, dim)]

    def numel(self) -> int:
        return math.prod(self.shape)

    nelement = numel

    def stride(self) -> tuple:
        return self.steps

    def is_contiguous(self) -> bool:
        return self.steps == contiguous(self.shape)

    def contiguous(self) -> "Tensor":
        return self if self.is_contiguous() else self.clone()

    def clone(self, **_: Any) -> "Tensor":
        return Tensor(self.flat(), self.shape, self.dtype)

    def detach(self) -> "Tensor":
        return self.view_of(self.shape, self.steps)

    def requires_grad_(self, needed: bool = True) -> "Tensor":
        if needed:
            raise NotInThisPage(limit=GRADIENTS)
        return self

    def backward(self, *_: Any, **__: Any) -> None:
        raise NotInThisPage(limit=GRADIENTS)

    def numpy(self, **_: Any) -> None:
        raise NotInThisPage("NumPy")

    def cpu(self) -> "Tensor":
        return self

    @property
    def data(self) -> "Tensor":
        return self.detach()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[k] for k in range(self.shape[0])])

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def reshape(self, *shape: Any) -> "Tensor":
        shape = inferred(sizes(shape), self.numel())
        source = self if self.is_contiguous() else self.clone()
        return source.view_of(shape, contiguous(shape))

    def view(self, *shape: Any) -> "Tensor":
        if len(shape) == 1 and isinstance(shape[0], dtype):
            raise NotInThisPage(limit="`view` cannot change the dtype")
        shape = inferred(sizes(shape), self.numel())
        if not self.is_contiguous():
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least "
                "one dimension spans "
                "across two contiguous subspaces). Use .reshape(...) instead."
            )
        return self.view_of(shape, contiguous(shape))

    def view_as(self, other: "Tensor") -> "Tensor":
        return self.view(other.shape)

    def reshape_as(self, other: "Tensor") -> "Tensor":
        return self.reshape(other.shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        if not self.shape:
            return self.reshape(1)
        first, last = axis(self, start_dim), axis(self, end_dim)
        return self.reshape(
            *self.shape[:first], math.prod(self.shape[first : last + 1]), *self.shape[last + 1 :]
        )

    ravel = flatten

    def unflatten(self, dim: int, sizes: Sequence[int]) -> "Tensor":
        k = axis(self, dim)
        inner = inferred(sizes, self.shape[k])
        return self.reshape(*self.shape[:k], *inner, *self.shape[k + 1 :])

    def permute(self, *dims: Any) -> "Tensor":
        order = [axis(self, k) for k in sizes(dims)]
        return self.view_of([self.shape[k] for k in order], [self.steps[k] for k in order])

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        order = list(range(self.ndim))
        first, second = axis(self, dim0), axis(self, dim1)
        if order:
            order[first], order[second] = order[second], order[first]
        return self.permute(order)

    swapaxes = transpose

    def t(self) -> "Tensor":
        return self.transpose(0, 1) if self.ndim == 2 else self

    T = property(lambda self: self.permute(list(range(self.ndim))[::-1]))
    mT = property(lambda self: self.transpose(-1, -2))

    def movedim(self, source: int, destination: int) -> "Tensor":
        order = list(range(self.ndim))
        order.insert(axis(self, destination), order.pop(axis(self, source)))
        return self.permute(order)

    def unsqueeze(self, dim: int) -> "Tensor":
        k = dim + self.ndim + 1 if dim < 0 else dim
        return self.view_of(
            [*self.shape[:k], 1, *self.shape[k:]], [*self.steps[:k], 1, *self.steps[k:]]
        )

    def squeeze(self, dim: int | None = None) -> "Tensor":
        dims = (
            range(self.ndim)
            if dim is None
            else [axis(self, k) for k in ([dim] if isinstance(dim, int) else dim)]
        )
        dims_left = [k for k in range(self.ndim) if k not in dims or self.shape[k] != 1]
        return self.view_of([self.shape[k] for k in dims_left], [self.steps[k] for k in dims_left])

    def expand(self, *shape: Any) -> "Tensor":
        shape = sizes(shape)
        more = len(shape) - self.ndim
        lengths, steps = [1] * more + list(self.shape), [0] * more + list(self.steps)
        target = [size if want == -1 else want for size, want in zip(lengths, shape, strict=True)]
        for k, (size, want) in enumerate(zip(lengths, target, strict=True)):
            if size not in (1, want):
                raise RuntimeError(
                    f"The expanded size of the tensor ({want}) must match the existing size "
                    f"({size}) at non-singleton "
                    f"dimension {k}.  Target sizes: {list(shape)}.  Tensor sizes: "
                    f"{list(self.shape)}"
                )
        return self.view_of(
            target, [0 if size == 1 else step for size, step in zip(lengths, steps, strict=True)]
        )

    def expand_as(self, other: "Tensor") -> "Tensor":
        return self.expand(other.shape)

    def repeat(self, *times: Any) -> "Tensor":
        times = sizes(times)
        repeated = self.reshape([1] * (len(times) - self.ndim) + list(self.shape))
        for k, count in enumerate(times):
            repeated = joined([repeated] * count, k) if count != 1 else repeated
        return repeated.clone()

    def repeat_interleave(self, count: int, dim: int | None = None) -> "Tensor":
        flat = self.flatten() if dim is None else self
        k = axis(flat, dim or 0)
        return flat.index_select(
            k,
            Tensor(
                [i for i in range(flat.shape[k]) for _ in range(count)],
                [flat.shape[k] * count],
                int64,
            ),
        )

    def tile(self, *times: Any) -> "Tensor":
        return self.repeat(*[1] * (self.ndim - len(sizes(times))), *sizes(times))

    def unbind(self, dim: int = 0) -> tuple:
        return tuple(self.select(dim, k) for k in range(self.shape[axis(self, dim)]))

    def select(self, dim: int, index: int) -> "Tensor":
        return self[(slice(None),) * axis(self, dim) + (index,)]

    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        return self[(slice(None),) * axis(self, dim) + (slice(start, start + length),)]

    def split(self, split_size: Any, dim: int = 0) -> tuple:
        size = self.shape[axis(self, dim)]
        lengths = (
            [split_size] * -(-size // split_size) if isinstance(split_size, int) else split_size
        )
        starts = [0, *itertools.accumulate(lengths)]
        return tuple(
            self.narrow(dim, at, min(length, size - at))
            for at, length in zip(starts, lengths, strict=False)
        )

    def chunk(self, chunks: int, dim: int = 0) -> tuple:
        return self.split(-(-self.shape[axis(self, dim)] // chunks), dim)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> "Tensor":
        first, second = axis(self, dim1), axis(self, dim2)
        rows, columns = self.shape[first], self.shape[second]
        length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        start = self.offset + (
            offset * self.steps[second] if offset >= 0 else -offset * self.steps[first]
        )
        dims_left = [k for k in range(self.ndim) if k not in (first, second)]
        steps = [self.steps[k] for k in dims_left] + [self.steps[first] + self.steps[second]]
        return self.view_of([self.shape[k] for k in dims_left] + [length], steps, start)

    def unfold(self, dimension: int, size: int, step: int) -> "Tensor":
        k = axis(self, dimension)
        count = (self.shape[k] - size) // step + 1
        shape, steps = [*self.shape, size], [*self.steps, self.steps[k]]
        shape[k], steps[k] = count, steps[k] * step
        return self.view_of(shape, steps)

    # type

    def to(self, *target: Any, **more: Any) -> "Tensor":
        new_type = more.get("dtype") or next(
            (getattr(x, "dtype", x) for x in target if isinstance(x, dtype | Tensor)), self.dtype
        )
        if new_type == self.dtype:
            return self
        values = self.flat()
        if self.dtype.kind == 3 and new_type.kind < 3:
            values = [x.real for x in values]
        return Tensor(rounded(values, new_type), self.shape, new_type)

    type = to

    def type_as(self, other: "Tensor") -> "Tensor":
        return self.to(other.dtype)

    def is_floating_point(self) -> bool:
        return self.dtype.kind == 2

    def is_complex(self) -> bool:
        return self.dtype.kind == 3

    @property
    def real(self) -> "Tensor":
        real = float64 if self.dtype == numbers.complex128 else float32
        return (
            Tensor([x.real for x in self.flat()], self.shape, real) if self.is_complex() else self
        )

    @property
    def imag(self) -> "Tensor":
        if not self.is_complex():
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return Tensor(
            [x.imag for x in self.flat()],
            self.shape,
            float64 if self.dtype == numbers.complex128 else float32,
        )

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.flat()[0]

    def tolist(self) -> Any:
        values = self.flat()
        for size in reversed(self.shape[1:]):
            count = len(values) // size if size else math.prod(self.shape[:-1])
            values = [values[k * size : (k + 1) * size] for k in range(count)]
        return values if self.shape else values[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind > 1 or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if not self.numel()
                else "Boolean value of Tensor with more than one value is ambiguous"
            )
        return bool(self.item())

    def __round__(self, digits: int = 0) -> "Tensor":
        return self.round(decimals=digits)

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if not self.shape else object.__format__(self, how)

    def __repr__(self) -> str:
        def said(x: Any) -> str:
            return f"{x:.4f}" if isinstance(x, float) and x == x and abs(x) < math.inf else str(x)

        def listed(x: Any) -> str:
            return f"[{', '.join(map(listed, x))}]" if isinstance(x, list) else said(x)

        plain = (float32, int64, numbers.bool_)
        dtype = "" if self.dtype in plain else f", dtype={self.dtype}"
        return f"tensor({listed(self.tolist())}{dtype})"

    def __deepcopy__(self, memo: dict) -> "Tensor":
        return self.clone()

    def __reduce__(self) -> tuple:
        return Tensor, (self.flat(), tuple(self.shape), self.dtype)

    # indices

    def __getitem__(self, index: Any) -> "Tensor":
        view, chosen = taken(self, index)
        return view if chosen is None else chosen_entries(view, chosen)

    def __setitem__(self, index: Any, value: Any) -> None:
        view, chosen = taken(self, index)
        if chosen is not None:
            where = chosen_entries(
                Tensor(list(range(len(self.storage))), view.shape, int64, view.steps, view.offset),
                chosen,
            )
            places, shape = where.flat(), where.shape
        else:
            places, shape = view.places(), view.shape
        value = value if isinstance(value, Tensor) else tensor(value)
        while value.ndim > len(shape) and value.shape[0] == 1:
            value = value[0]
        for place, x in zip(places, rounded(value.expand(shape).flat(), self.dtype), strict=True):
            self.storage[place] = x

    def index_select(self, dim: int, index: "Tensor") -> "Tensor":
        return self[(slice(None),) * axis(self, dim) + (index,)]

    def gather(self, dim: int, index: "Tensor") -> "Tensor":
        k, entries = axis(self, dim), []
        for at, chosen in zip(
            itertools.product(*map(range, index.shape)), index.flat(), strict=True
        ):
            place = self.offset + sum(
                step * (chosen if j == k else at[j]) for j, step in enumerate(self.steps)
            )
            entries.append(self.storage[place])
        return Tensor(entries, index.shape, self.dtype)

    def nonzero(self, as_tuple: bool = False) -> Any:
        places = [
            at
            for at, x in zip(itertools.product(*map(range, self.shape)), self.flat(), strict=True)
            if x != 0
        ]
        if as_tuple:
            return tuple(
                Tensor([at[k] for at in places], [len(places)], int64) for k in range(self.ndim)
            )
        return Tensor([x for at in places for x in at], [len(places), self.ndim], int64)

    def masked_select(self, mask: "Tensor") -> "Tensor":
        return self[mask]

    def fill_diagonal_(self, value: float) -> "Tensor":
        self.diagonal().put([value] * min(self.shape))
        return self

    def fill_(self, value: float) -> "Tensor":
        return self.put([float(value) if isinstance(value, Tensor) else value] * self.numel())

    def zero_(self) -> "Tensor":
        return self.fill_(0)

    def copy_(self, other: "Tensor") -> "Tensor":
        return self.put(other.expand(self.shape).flat())


# arguments


def sizes(given: Sequence) -> list[int]:
    """Return a shape that was given as several numbers or as one sequence of numbers."""
    if len(given) == 1 and not isinstance(given[0], int | Tensor):
        given = given[0]
    return [int(x) for x in given]


def inferred(shape: Sequence[int], count: int) -> list[int]:
    """Replace the size -1 in a shape by the size that fits the number of entries.

    Raises:
        RuntimeError: if no size fits the number of entries.
    """
    shape = list(shape)
    if -1 in shape:
        missing = -math.prod(shape)
        if missing and count % missing == 0:
            shape[shape.index(-1)] = count // missing
    if math.prod(shape) != count or -1 in shape:
        raise RuntimeError(f"shape '{shape}' is invalid for input of size {count}")
    return shape


def axis(x: Tensor, dim: int, more: int = 0) -> int:
    """Return the number of an axis, counted from 0. The given number may be negative.

    Raises:
        IndexError: if the tensor has no such axis.
    """
    count = max(x.ndim + more, 1)
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but "
            f"got {dim})"
        )
    return dim % count


def dims_of(x: Tensor, dim: Any) -> list[int]:
    if dim is None or dim == ():
        return list(range(x.ndim))
    return sorted(axis(x, k) for k in ([dim] if isinstance(dim, int) else dim))


def kind_of(value: Any) -> dtype:
    if isinstance(value, bool):
        return numbers.bool_
    if isinstance(value, int):
        return int64
    return numbers.complex64 if isinstance(value, complex) else float32


def result_type(*values: Any) -> dtype:
    """Return the dtype of the result of an operation on these values.

    If values are of the same kind (such as integers), the dtypes of tensors with axes take
    precedence over those of tensors without axes, and these over numbers.
    """
    ranks: list[dtype | None] = [None, None, None]
    for value in values:
        place = (0 if value.shape else 1) if isinstance(value, Tensor) else 2
        rank_type = value.dtype if isinstance(value, Tensor) else kind_of(value)
        ranks[place] = rank_type if ranks[place] is None else promoted(ranks[place], rank_type)
    common = None
    for rank_type in ranks:
        if rank_type is None:
            continue
        if common is None:
            common = rank_type
        elif rank_type.kind > common.kind:
            common = numbers.complex128 if rank_type.kind == 3 and common == float64 else rank_type
    return common


def number(value: Any) -> Any:
    """Convert a learner's number to a Python bool, int, float or complex.

    Raises:
        TypeError: if the value is not a number.
    """
    if isinstance(value, bool | int | float | complex):
        return value
    if hasattr(value, "__float__") and not isinstance(value, str):
        return float(value)
    raise TypeError(f"unsupported operand type(s): 'Tensor' and '{type(value).__name__}'")


def tensor(
    data: Any, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor from nested lists, which contain numbers or tensors without axes."""
    if requires_grad:
        raise NotInThisPage(limit=GRADIENTS)
    values, shape = read(data)
    if dtype is None:
        dtype = float32 if not values else None
        for value in values:
            value_type = value.dtype if isinstance(value, Tensor) else kind_of(value)
            dtype = value_type if dtype is None else promoted(dtype, value_type)
    values = [x.item() if isinstance(x, Tensor) else x for x in values]
    if dtype == int64 and any(isinstance(x, int) and not -(2**63) <= x < 2**63 for x in values):
        raise RuntimeError("Overflow when unpacking long long")
    return Tensor(rounded(values, dtype), shape, dtype)


def read(data: Any) -> tuple[list, list[int]]:
    """Return the numbers in nested lists, row by row, and the shape of the lists.

    Raises:
        ValueError: if the lists differ in length.
        TypeError: if an entry is not a number.
    """
    if isinstance(data, Tensor):
        return [data[at] for at in itertools.product(*map(range, data.shape))] if data.shape else [
            data
        ], list(data.shape)
    if isinstance(data, bool | int | float | complex):
        return [data], []
    if isinstance(data, list | tuple | range):
        parts = [read(part) for part in data]
        inner = parts[0][1] if parts else []
        for values, shape in parts:
            if shape != inner:
                raise ValueError(
                    f"expected sequence of length {inner[0] if inner else 0} at dim 1 (got "
                    f"{shape[0] if shape else len(values)})"
                )
        return [x for values, _ in parts for x in values], [len(parts), *inner]
    if data is not None and hasattr(data, "__float__") and not isinstance(data, str):
        return [float(data)], []
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


# indices


def taken(x: Tensor, index: Any) -> tuple[Tensor, dict | None]:
    """Return the view that the integers and slices of an index select.

    We also return the index tensors that must still be applied to this view, keyed by axis.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [tensor(p) if isinstance(p, list | range) else p for p in parts]
    used = sum(
        (p.ndim if p.dtype.kind == 0 else 1)
        if isinstance(p, Tensor)
        else p is not None and p is not Ellipsis and not isinstance(p, bool)
        for p in parts
    )
    if used > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    whole_axes = [slice(None)] * (x.ndim - used)
    if any(p is Ellipsis for p in parts):
        k = next(k for k, p in enumerate(parts) if p is Ellipsis)
        parts[k : k + 1] = whole_axes
    else:
        parts += whole_axes
    shape, steps, offset, chosen, k = [], [], x.offset, {}, 0
    for part in parts:
        if part is None:
            shape.append(1), steps.append(1)
            continue
        if isinstance(part, Tensor) and (part.shape or part.dtype.kind == 0):
            for places in part.nonzero(as_tuple=True) if part.dtype.kind == 0 else [part]:
                if (
                    part.dtype.kind == 0
                    and tuple(part.shape) != tuple(x.shape[k : k + part.ndim])
                    and not len(chosen)
                ):
                    raise IndexError(
                        f"The shape of the mask {list(part.shape)} at index 0 does not match "
                        f"the shape of the indexed tensor {list(x.shape)} at index 0"
                    )
                chosen[len(shape)] = places
                shape.append(x.shape[k]), steps.append(x.steps[k])
                k += 1
            continue
        size, step = x.shape[k], x.steps[k]
        if isinstance(part, slice):
            start, stop, by = slice(
                *(
                    None if e is None else operator.index(e)
                    for e in (part.start, part.stop, part.step)
                )
            ).indices(size)
            if by <= 0:
                raise ValueError("step must be greater than zero")
            shape.append(len(range(start, stop, by))), steps.append(step * by)
            offset += start * step if shape[-1] else 0
        else:
            at = operator.index(part)
            if not -size <= at < size:
                raise IndexError(f"index {at} is out of bounds for dimension {k} with size {size}")
            offset += at % size * step
        k += 1
    return x.view_of(shape, steps, offset), chosen or None


def chosen_entries(x: Tensor, chosen: dict[int, Tensor]) -> Tensor:
    """Return the entries that index tensors choose along their axes, after broadcasting."""
    shape = broadcast_shape(*(index.shape for index in chosen.values()))
    lists = []
    for k, index in chosen.items():
        values, size = index.expand(shape).flat(), x.shape[k]
        for at in values:
            if not -size <= at < size:
                raise IndexError(
                    f"index {int(at)} is out of bounds for dimension {k} with size {size}"
                )
        lists.append([int(at) % size * x.steps[k] for at in values])
    steps = [sum(offsets) for offsets in zip(*lists, strict=True)]
    axes_left = [k for k in range(x.ndim) if k not in chosen]
    axes = list(chosen)
    front = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    before, after = [k for k in axes_left if k < front], [k for k in axes_left if k >= front]

    def places(start: int, over: list[int]) -> list[int]:
        reached = [start]
        for k in over:
            reached = [at + j * x.steps[k] for at in reached for j in range(x.shape[k])]
        return reached

    values = [
        x.storage[at]
        for one in places(x.offset, before)
        for step in steps
        for at in places(one + step, after)
    ]
    return Tensor(
        values, [*(x.shape[k] for k in before), *shape, *(x.shape[k] for k in after)], x.dtype
    )


# arithmetic


def broadcast_shape(*shapes: Sequence[int]) -> list[int]:
    """Return the smallest shape to which all given shapes can be broadcast.

    Raises:
        RuntimeError: if there is no common shape.
    """
    common: list[int] = []
    for shape in shapes:
        a, b = (
            [1] * (len(shape) - len(common)) + common,
            [1] * (len(common) - len(shape)) + list(shape),
        )
        for k, (first, second) in enumerate(zip(a, b, strict=True)):
            if first != second and 1 not in (first, second):
                raise RuntimeError(
                    f"The size of tensor a ({first}) must match the size of tensor b ({second}) "
                    f"at non-singleton dimension {k}"
                )
        common = [second if first == 1 else first for first, second in zip(a, b, strict=True)]
    return common


def finished(result: Any, *given: Any) -> Any:
    """Report the result of an operation to all watchers (see `torch.overrides`), and return it."""
    for watch in watchers:
        watch(result, given)
    return result


def unary(x: Any, function: Callable, to_float: bool = False, to: dtype | None = None) -> Tensor:
    x = x if isinstance(x, Tensor) else tensor(x)
    dtype_ = to or (float32 if to_float and x.dtype.kind < 2 else x.dtype)
    values = [
        function(v) for v in (map(float, x.flat()) if to_float and x.dtype.kind < 3 else x.flat())
    ]
    return finished(Tensor(rounded(values, dtype_), x.shape, dtype_), x)


def worked_in(x: Any, own: dtype) -> Any:
    """Convert an operand to the dtype in which we compute, which is float32 for smaller dtypes."""
    if own.kind != 2 or own == float64:
        return x
    if isinstance(x, Tensor):
        return x if x.dtype.kind == 2 and x.dtype.rank <= 32 else x.to(own)
    return rounded([x], float32)[0]


def binary(
    a: Any, b: Any, function: Callable, *, floats: bool = False, to: dtype | None = None
) -> Tensor:
    """Return function(a, b) entry by entry, in the common dtype of both."""
    if (
        isinstance(a, list | tuple | str)
        or isinstance(b, list | tuple | str)
        or a is None
        or b is None
    ):
        second = b if isinstance(a, Tensor) else a
        raise TypeError(f"unsupported operand type(s): 'Tensor' and '{type(second).__name__}'")
    a, b = (x if isinstance(x, Tensor) else number(x) for x in (a, b))
    dtype_ = result_type(a, b)
    if floats and dtype_.kind < 2:
        dtype_ = float32
    a, b = (worked_in(x, dtype_) for x in (a, b))
    if not isinstance(b, Tensor):
        shape, values = a.shape, [function(x, b) for x in a.flat()]
    elif not isinstance(a, Tensor):
        shape, values = b.shape, [function(a, y) for y in b.flat()]
    else:
        shape = a.shape if a.shape == b.shape else broadcast_shape(a.shape, b.shape)
        one, second = (
            x.flat() if list(x.shape) == list(shape) else x.expand(shape).flat() for x in (a, b)
        )
        values = list(map(function, one, second))
    return finished(Tensor(rounded(values, to or dtype_), shape, to or dtype_), a, b)


# name: a function of two numbers, whether the result is real for integers, too, and the dtype of
# the result
OPERATIONS = {
    "add": (operator.add, False, None),
    "sub": (operator.sub, False, None),
    "mul": (operator.mul, False, None),
    "truediv": (numbers.divide, True, None),
    "floordiv": (numbers.floor_divide, False, None),
    "mod": (numbers.remainder, False, None),
    "pow": (numbers.power, False, None),
    "eq": (operator.eq, False, numbers.bool_),
    "ne": (operator.ne, False, numbers.bool_),
    "lt": (operator.lt, False, numbers.bool_),
    "le": (operator.le, False, numbers.bool_),
    "gt": (operator.gt, False, numbers.bool_),
    "ge": (operator.ge, False, numbers.bool_),
    "and": (operator.and_, False, None),
    "or": (operator.or_, False, None),
    "xor": (operator.xor, False, None),
    "lshift": (operator.lshift, False, None),
    "rshift": (operator.rshift, False, None),
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def in_place(x: Tensor, result: Tensor) -> Tensor:
    """Write the result of an operation back into a tensor.

    Raises:
        RuntimeError: if the result has another shape or does not fit the dtype.
    """
    if result.shape != x.shape:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    if result.dtype.kind > x.dtype.kind:
        names = {numbers.bool_: "Bool", int64: "Long", float32: "Float", float64: "Double"}
        raise RuntimeError(
            f"result type {names.get(result.dtype, result.dtype)} can't be cast to the "
            f"desired output type {names.get(x.dtype, x.dtype)}"
        )
    return x.put(result.flat())


def _operator(name: str) -> None:
    function, floats, to = OPERATIONS[name]

    def forward(self: Tensor, other: Any) -> Any:
        if (
            isinstance(other, list | tuple | str | dict)
            or other is None
            or not (
                isinstance(other, Tensor)
                or hasattr(other, "__float__")
                or isinstance(other, complex)
            )
        ):
            return NotImplemented
        return binary(self, other, function, floats=floats, to=to)

    def backward(self: Tensor, other: Any) -> Any:
        return binary(other, self, function, floats=floats, to=to)

    setattr(Tensor, f"__{name}__", forward)
    if name not in COMPARISONS:
        setattr(Tensor, f"__r{name}__", backward)
        setattr(Tensor, f"__i{name}__", lambda self, other: in_place(self, forward(self, other)))


for _name in OPERATIONS:
    _operator(_name)
Tensor.__neg__ = lambda self: unary(self, operator.neg)
Tensor.__pos__ = lambda self: self
Tensor.__abs__ = lambda self: self.abs()
Tensor.__invert__ = lambda self: unary(
    self, (lambda x: not x) if self.dtype.kind == 0 else operator.invert
)


# along axes


def lines(x: Tensor, dims: Sequence[int]) -> tuple[list[list], list[int]]:
    """Return the lists of entries along some axes, and the shape of the other axes.

    There is one list for each combination of indices in the other axes.
    """
    axes_left = [k for k in range(x.ndim) if k not in dims]
    length = math.prod(x.shape[k] for k in dims)
    values = (x.permute([*axes_left, *dims]) if x.ndim else x).flat()
    count = math.prod(x.shape[k] for k in axes_left)
    return [values[k * length : (k + 1) * length] for k in range(count)], [
        x.shape[k] for k in axes_left
    ]


def reduced(
    x: Tensor, dim: Any, keepdim: bool, function: Callable, to: dtype | None = None
) -> Tensor:
    """Apply a function to each list of entries along the axes `dim`.

    The function returns one number for each list. The result is a tensor of these numbers, without
    the axes `dim`, or with length 1 along them if `keepdim` is true.
    """
    x = x if isinstance(x, Tensor) else tensor(x)
    dims = dims_of(x, dim)
    rows, shape = lines(x, dims)
    dtype_ = to or x.dtype
    result = Tensor(rounded(map(function, rows), dtype_), shape, dtype_)
    if keepdim:
        result = result.reshape([1 if k in dims else size for k, size in enumerate(x.shape)])
    return finished(result, x)


def mapped(
    x: Tensor, dim: int, function: Callable, to: dtype | None = None, length: int | None = None
) -> Tensor:
    """Replace each list of entries along an axis by the list that a function returns for it."""
    if not x.shape:
        return mapped(x.reshape(1), 0, function, to).reshape(())
    k, dtype_ = axis(x, dim), to or x.dtype
    rows, shape = lines(x, [k])
    rows = [function(row) for row in rows]
    length = len(rows[0]) if rows else length if length is not None else x.shape[k]
    result = Tensor(rounded([v for row in rows for v in row], dtype_), [*shape, length], dtype_)
    return finished(result.movedim(-1, k) if x.ndim > 1 else result, x)


def joined(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Return the tensors concatenated along an axis."""
    parts = list(tensors)
    if not parts:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    dtype_ = result_type(*parts)
    parts = [x for x in parts if tuple(x.shape) != (0,)] or parts[:1]
    if any(not x.shape for x in parts):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    k = axis(parts[0], dim)
    for x in parts[1:]:
        if x.ndim != parts[0].ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {parts[0].ndim} and {x.ndim}"
            )
        for j in range(x.ndim):
            if j != k and x.shape[j] != parts[0].shape[j]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {k}. "
                    f"Expected size {parts[0].shape[j]} but got size {x.shape[j]} for tensor "
                    f"number {parts.index(x) if False else 1} in the list."
                )
    moved = [x.movedim(k, 0).flat() for x in parts]
    shape = [sum(x.shape[k] for x in parts), *(s for j, s in enumerate(parts[0].shape) if j != k)]
    result = Tensor(rounded([v for values in moved for v in values], dtype_), shape, dtype_)
    return finished(result.movedim(0, k), *parts)


class Found(NamedTuple):
    """Hold values and the positions at which they were found."""

    values: Tensor
    indices: Tensor
