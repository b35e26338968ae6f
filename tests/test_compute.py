"""Devices, seeds, threads and memory."""

import contextlib

import pytest
import torch

from course.training import threads
from helpers import compute


def test_threads_are_put_back_even_after_an_error():
    before = torch.get_num_threads()
    with contextlib.suppress(RuntimeError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise RuntimeError("inside")
    assert torch.get_num_threads() == before


def test_chunks_are_halved_until_they_fit():
    sizes = []

    def fits(chunk):
        sizes.append(chunk)
        if chunk > 3:
            raise torch.OutOfMemoryError("too large")
        return chunk

    assert compute.shrink(fits, 16) == 2
    assert sizes == [16, 8, 4, 2]


def test_what_never_fits_is_an_error():
    def never(chunk):
        raise torch.OutOfMemoryError("too large")

    with pytest.raises(torch.OutOfMemoryError):
        compute.shrink(never, 4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_used_and_its_memory_limit_survived():
    assert compute.device().type == "cuda"

    def large(chunk):
        return torch.empty(chunk << 34, dtype=torch.uint8, device="cuda").numel()

    assert compute.shrink(large, 64) < 64 << 34
