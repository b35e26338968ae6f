"""Devices, seeds, threads and memory."""

import pytest
import torch

from helpers import compute


def test_seed_repeats_and_refuses():
    first = torch.rand(3, generator=compute.seed(5))
    assert torch.equal(first, torch.rand(3, generator=compute.seed(5)))
    for bad in (-1, 2**32, 1.5):
        with pytest.raises(ValueError, match="seed must be"):
            compute.seed(bad)


def test_threads_are_put_back_even_after_an_error():
    def fail_inside():
        with compute.threads(1):
            assert torch.get_num_threads() == 1
            raise RuntimeError("inside")

    before = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="inside"):
        fail_inside()
    assert torch.get_num_threads() == before
    with pytest.raises(ValueError, match="threads"), compute.threads(0):
        pass


def test_chunks_are_halved_until_they_fit():
    sizes = []

    def fits(chunk):
        sizes.append(len(chunk))
        if len(chunk) > 3:
            raise torch.OutOfMemoryError("too large")
        return torch.tensor(chunk)

    assert compute.chunked(fits, list(range(10)), 8).tolist() == list(range(10))
    assert sizes == [8, 4, 2, 2, 2, 2, 2]


def test_an_item_that_never_fits_is_an_error():
    def never(chunk):
        raise torch.OutOfMemoryError("too large")

    with pytest.raises(torch.OutOfMemoryError):
        compute.chunked(never, [1, 2], 2)
    for items, size, message in (([], 2, "items"), ([1], 0, "size")):
        with pytest.raises(ValueError, match=message):
            compute.chunked(never, items, size)


def test_dtype_names():
    assert compute.dtype("bf16") is torch.bfloat16
    assert compute.dtype(torch.float16) is torch.float16
    with pytest.raises(ValueError, match="fp32, fp16, bf16, fp64"):
        compute.dtype("int4")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_used_and_its_memory_limit_survived():
    assert compute.device().type == "cuda"

    def large(chunk):
        return torch.empty(len(chunk) << 34, dtype=torch.uint8, device="cuda").sum(0, keepdim=True).repeat(len(chunk))

    assert len(compute.chunked(large, list(range(32)), 32)) == 32
