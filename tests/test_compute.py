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
    with pytest.raises(ValueError, match="count"), compute.threads(0):
        pass


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
    with pytest.raises(ValueError, match="chunk must be an integer of at least 1"):
        compute.shrink(never, 0)


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
        return torch.empty(chunk << 34, dtype=torch.uint8, device="cuda").numel()

    assert compute.shrink(large, 64) < 64 << 34
