"""Describe the model that a report is about, and how much of it can be read."""

import contextlib
import gc
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course.chapter5 import measures
from course.report import trained
from helpers import compute, intervention, models, probe, require
from helpers.models import LanguageModel


class Plan(NamedTuple):
    """Hold the size of each measurement of a report, such as its lengths and number of texts.

    The last plan in `PLANS` has the labs' settings.
    """

    name: str
    seeds: tuple[int, ...]  # positions in the text at which sinks are counted
    probes: int  # the number of random directions for the sensitivity
    texts: int  # the number of texts for knockouts and for ablated pairs
    ones: int  # the longest sequence of ones on which formats are compared
    grid: tuple[int, ...]  # the lengths at which repeated tokens are compared
    copied: tuple[int, ...]  # the numbers of digits to copy from
    counted: tuple[int, ...]  # the numbers of items to count
    lines: tuple[str, ...]  # kinds of answer lines, begun for the model or written by the model
    prose: int  # the number of tokens of prose
    controls: int  # the number of random sets of pairs
    claims: int  # the largest number of tokens that one claim may send through the model


PLANS = (
    Plan("short", (0,), 8, 1, 128, (6, 22, 50), (5, 50), (3, 10), ("begun",), 128, 1, 1_200),
    Plan(
        "middle",
        (0, 20),
        16,
        3,
        256,
        (6, 22, 50, 102),
        (5, 20, 50, 100),
        (3, 5, 10),
        ("begun",),
        256,
        3,
        6_000,
    ),
    Plan(
        "full",
        (0, 20, 40),
        30,
        7,
        512,
        (6, 22, 50, 102, 202),
        (5, 10, 20, 50, 100, 300),
        (3, 5, 10, 50, 100),
        ("own", "begun"),
        256,
        3,
        10**9,
    ),
)


# the number of tokens for which chapter 5 computes attention matrices from queries and keys
MAPS = 256
LONGEST = 120  # the largest number of bytes in a model's name, which is part of file names


class Subject:
    """Hold a loaded model, and answer what a section may ask about it.

    For example, a section may ask for the model's name, its context, or a copy of it in another
    floating-point format.

    Args:
        name: a name for `models.load`, or the name or the .safetensors file of a checkpoint of the
            course.
        dtype, device: as in `models.load`.

    Raises:
        ValueError, OSError: as in `models.load` or `checkpoints.load`.
    """

    def __init__(self, name: str, dtype: str = "fp32", device: str | None = None):
        self.asked, self.dtype, self.place = name, dtype, device
        require.text("MODEL", name, empty=False)
        if len(os.fsencode(Path(name).name)) > LONGEST:
            most = f"at most {LONGEST} letters ({LONGEST // 3} Chinese ones)"
            raise ValueError(
                f"the name of a model must have {most}, but {Path(name).name[:20]!r}… is longer"
            )
        self.trained = trained.checkpoint(name)
        self.model: LanguageModel = self._load(dtype)
        self.config = self.model.model.config.get_text_config()
        self.unread: str | None = None  # why the parts of its attention cannot be read, or None
        try:
            self._finite()
        except ValueError:
            raise
        except Exception as error:  # a model with unusual sizes may raise any error
            raise ValueError(
                f"{self.short} cannot read a text of 8 tokens ({sentence(error)})"
            ) from error
        self.parameters = sum(weight.numel() for weight in self.model.model.parameters())

    def _load(self, dtype: str) -> LanguageModel:
        if self.trained is None:
            return models.load(self.asked, dtype, self.place)
        return trained.language_model(self.trained, Path(self.asked).stem, dtype, self.place)

    @property
    def short(self) -> str:
        """Return the model's name in the form that pages print."""
        return self.model.short

    @property
    def named(self) -> str:
        """Return the name under which the model was loaded, without the folders of this machine."""
        return self.short if Path(self.asked).expanduser().exists() else self.asked

    @property
    def committed(self) -> bool:
        """Return whether the course's tables are about this model in this floating-point format."""
        return self.model.name == models.DEFAULT and self.dtype == "fp32"

    @property
    def context(self) -> int:
        """Return the context length in tokens for which the model was made."""
        most = getattr(self.config, "max_position_embeddings", None) or getattr(
            self.config, "n_positions", None
        )
        return int(most or 10**9)

    @property
    def readable(self) -> int:
        """Return the largest number of tokens that the report may give to the model.

        For a checkpoint of the course this number may exceed its trained length, because testing
        beyond that length is its purpose.
        """
        return self.context if self.trained is None else 10**9

    @property
    def hides(self) -> str | None:
        """Return why attention over 256 tokens is not just the softmax of rotated queries and keys.

        The result is None if it is just this softmax, so that a section can compute attention from
        queries and keys.
        """
        layers = probe.layers(self.model)
        windows = [layer.window for layer in layers if layer.window and layer.window < MAPS]
        if windows:
            some = (
                "its layers see"
                if len(windows) == len(layers)
                else f"{len(windows)} of its {len(layers)} layers see"
            )
            return f"{some} a window of {min(windows)} tokens, and this takes maps of {MAPS}"
        if any(layer.softcap for layer in layers):
            return "its logits have a soft cap, and this reads them off queries and keys"
        return None

    @property
    def mixes(self) -> str:
        """Describe in words what mixes tokens in the model's layers."""
        counts: dict[str, int] = {}
        for layer in probe.layers(self.model):
            description = ("latent " if layer.latent else "") + layer.mixes
            if layer.layout:
                part = "" if layer.share == 1 else f" in {layer.share:.0%} of a head"
                description += (
                    f", turned{part}, pairs "
                    f"{'half a head apart' if layer.layout == 'half' else 'side by side'}"
                )
            elif layer.read:
                description += ", not turned"
            description += f", a window of {layer.window:,}" if layer.window else ""
            description += ", learned sinks" if layer.sinks else ""
            description += ", a soft cap" if layer.softcap else ""
            counts[description] = counts.get(description, 0) + 1
        return "; ".join(
            f"{count} × {description}" if len(counts) > 1 else description
            for description, count in counts.items()
        )

    def _finite(self) -> None:
        """Raise an error if weights or logits are not finite.

        We also note whether the logits change if the model runs with the attention that we replace
        to read it.
        """
        for name, weight in self.model.model.named_parameters():
            if not weight.is_meta and not bool(torch.isfinite(weight).all()):
                raise ValueError(
                    f"the weights of {self.short} are not finite ({name}). Choose another model"
                )
        ids = torch.arange(min(8, self.context, self.config.vocab_size))[None].to(
            self.model.model.device
        )
        with torch.inference_mode():
            logits = self.model.model(ids, use_cache=False).logits
        if not bool(torch.isfinite(logits).all()):
            raise ValueError(
                f"the logits of {self.short} in {self.dtype} are not finite. Choose another dtype"
            )
        try:
            whole, by_head = logits[0].float().cpu(), intervention.read(self.model, ids[0]).logits
        except Exception:  # each section that needs attention matrices says why it cannot have them
            return
        off = float((by_head - whole).abs().max() / whole.std())
        if off > max(1e-3, 32 * torch.finfo(self.model.model.dtype).eps):
            self.unread = (
                f"read head by head, {self.short} gives logits that are {off:.1g} of their spread "
                "off its own"
            )

    def needs(self, tokens: int) -> None:
        """Raise an error if the model cannot read a text of this many tokens."""
        if tokens > self.readable:
            raise ValueError(
                f"this section needs a text of {tokens:,} tokens, but the context is "
                f"{self.context:,}"
            )

    def within(self, lengths: tuple[int, ...], around: int = 0) -> list[int]:
        """Return those lengths that fit into the context together with `around` more tokens."""
        fit = [n for n in lengths if n + around <= self.readable]
        if not fit:
            self.needs(lengths[0] + around)
        return fit

    @contextlib.contextmanager
    def copy(self, dtype: str) -> Iterator[LanguageModel]:
        """Load the same model in another floating-point format, for the `with` block only."""
        if dtype == self.dtype:
            yield self.model
            return
        needed, free = (
            self.parameters * (2 if dtype in ("bf16", "fp16") else 4),
            free_memory(self.model.model.device),
        )
        if needed > free:
            raise ValueError(
                f"a copy in {dtype} needs {needed / 1000000000.0:.1f} GB of memory, but "
                f"only {free / 1000000000.0:.1f} GB are free"
            )
        converted = self._load(dtype)
        try:
            yield converted
        finally:
            del converted
            gc.collect()

    def facts(self) -> dict[str, Any]:
        """Return the facts about the model that the report's JSON stores.

        The facts are the model's name, size, shape, tokenizer, configuration and hashes.
        """
        config, network = self.config, self.model.model
        tokenizer = self.model.tokenizer
        heads = int(getattr(config, "num_attention_heads", None) or 0)
        opened = probe.opening(self.model)
        try:
            ones = {"tokens_of_50_ones": len(probe.encode(self.model, "1" * 50))}
        except ValueError:
            ones = {}
        whole = network.config.to_dict()
        whole.pop("_name_or_path", None)
        plain = json.loads(json.dumps(whole, default=str, sort_keys=True))
        return {
            "name": self.short,
            "asked": self.named,
            "architecture": type(network).__name__
            if self.trained is None
            else "Decoder of the course, as a GPT-NeoX",
            "type": network.config.model_type,
            "parameters": self.parameters,
            "layers": len(probe.layers(self.model)),
            "heads": heads,
            "groups": int(getattr(config, "num_key_value_heads", None) or heads),
            "width": int(self.model.model.get_input_embeddings().weight.shape[1]),
            "mixes": self.mixes,
            "context": self.context if self.context < 10**9 else None,
            "vocabulary": int(config.vocab_size),
            "dtype": self.dtype,
            "device": str(network.device),
            "first_token": tokenizer.decode(opened.tokens) if len(opened.tokens) else None,
            "opening": {
                "how": opened.how,
                "losses": {way: round(loss, 3) for way, loss in opened.losses.items()},
            },
            **ones,
            "chat_template": bool(tokenizer.chat_template),
            "unpacked_4_bit": self.model.unpacked,
            "configuration": plain,
            "configuration_sha256": hashlib.sha256(
                json.dumps(plain, sort_keys=True).encode()
            ).hexdigest(),
            "weights_sha256": self.weights(),
        }

    def weights(self) -> str:
        """Compute a hash of the weights as loaded.

        The hash depends on the names and shapes of the weights, and on their sums and sums of
        squares in float64.
        """
        digest = hashlib.sha256()
        for name, weight in self.model.model.named_parameters():
            if weight.is_meta:  # this weight is on the disk, because memory is too small
                sums = (0.0, 0.0)
            else:
                parts = [part.cpu().double() for part in weight.detach().flatten().split(1 << 24)]
                sums = (sum(float(p.sum()) for p in parts), sum(float(p @ p) for p in parts))
            digest.update(f"{name} {tuple(weight.shape)} {sums[0]:.9e} {sums[1]:.9e}\n".encode())
        return digest.hexdigest()


def sentence(error: BaseException) -> str:
    """Return the first line of an error's message.

    >>> sentence(ValueError("one\\ntwo"))
    'one'
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def free_memory(device: torch.device) -> int:
    """Return how many bytes of memory are free on a device.

    >>> free_memory(torch.device("cpu")) > 0
    True
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(
            1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextlib.contextmanager
def watched() -> Iterator[dict[str, int]]:
    """Measure the peak memory, in bytes, that the process uses inside the block.

    If there is an accelerator, its peak memory is measured, too. On systems other than Linux, the
    result is the peak of the whole process so far.

    >>> with watched() as peak:
    ...     held = torch.zeros(10)
    >>> peak["process_bytes"] > 0
    True
    """
    peaks: dict[str, int] = {}
    with contextlib.suppress(OSError):
        # this resets the peak that the system has recorded so far
        Path("/proc/self/clear_refs").write_text("5")
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    yield peaks
    try:
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        peaks["process_bytes"] = 1024 * int(peak[1])
    except (OSError, TypeError):
        import resource

        peaks["process_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peaks["bytes"] = (torch.cuda.is_available() and torch.cuda.max_memory_allocated()) or peaks[
        "process_bytes"
    ]


def versions() -> dict[str, str]:
    """Return the versions of the packages on which the numbers of a report depend.

    >>> sorted(versions())
    ['numpy', 'python', 'torch', 'transformers']
    """
    import platform

    import numpy
    import transformers

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": numpy.__version__,
    }


def prose(model: LanguageModel, tokens: int) -> torch.Tensor:
    """Return the first `tokens` tokens of the course's prose, after the model's opening tokens.

    The opening tokens count, so the result has `tokens` tokens in total.

    Raises:
        ValueError: if the tokenizer makes too few tokens of the prose.
    """
    ids = measures.prose(model, tokens)
    if len(ids) < tokens:
        raise ValueError(
            f"the course's prose has only {len(ids)} tokens in this tokenizer, but this "
            f"section needs {tokens}"
        )
    return ids


SEED = 0  # the seed of everything that is drawn


def seeded() -> None:
    """Set the random seed of the report, at the start of a section.

    >>> seeded()
    """
    compute.seed(SEED)
