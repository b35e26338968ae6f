"""Decoders of a few thousand random weights, one for each architecture that the course must read."""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from helpers import compute, data, models

BOS = "<bos>"
VOCABULARY = [BOS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
}
KINDS = {
    "llama": (LlamaConfig, LLAMA | {"tie_word_embeddings": True}),
    "qwen2": (Qwen2Config, LLAMA),
    "gemma": (GemmaConfig, LLAMA | {"num_key_value_heads": 1}),
    "gemma2": (Gemma2Config, LLAMA | {"sliding_window": 8, "query_pre_attn_scalar": 16}),
    "gpt2": (GPT2Config, {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 512}),
}


def tiny(kind: str, seed: int = 0, attention: str = "sdpa", **overrides) -> models.LanguageModel:
    """A random decoder of the given kind and a tokenizer with one token a byte.

    Args:
        kind: one of `KINDS`; all but "gpt2" group their keys (`num_key_value_heads=4` undoes it).
        seed: of the weights.
        attention: "sdpa" or "eager"; "gemma2" knows only the second.
        overrides: further fields of the configuration, such as `num_hidden_layers`.
    """
    make, fields = KINDS[kind]
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    compute.seed(seed)
    config = make(vocab_size=len(VOCABULARY), **ids, **(fields | overrides))
    attention = "eager" if kind == "gemma2" else attention  # its soft caps have no fused form
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return models.LanguageModel(model.eval().requires_grad_(False), byte_tokenizer())


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, and a first token `<bos>` that must be asked for."""
    backend = Tokenizer(BPE(vocab={token: i for i, token in enumerate(VOCABULARY)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(BOS, special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=BOS, eos_token=BOS, pad_token=BOS)


def saved(kind: str, folder: Path) -> Path:
    """A tiny decoder with a tokenizer that was trained on the course's prose, in a folder as `save_pretrained` writes it.

    "gpt2" merges digits, has a chat template and no BOS; the others read each digit alone.
    """
    if folder.exists():
        return folder
    room = {"n_positions": 1024} if kind == "gpt2" else {"max_position_embeddings": 1024}
    tokenizer = prose_tokenizer(kind == "gpt2")
    make, fields = KINDS[kind]
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    compute.seed(0)
    model = AutoModelForCausalLM.from_config(make(vocab_size=len(tokenizer), **ids, **(fields | room)))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def prose_tokenizer(merges_digits: bool) -> PreTrainedTokenizerFast:
    """Byte-level BPE of 1,500 tokens; if it merges digits it has a chat template and an end-of-text token alone."""
    backend = Tokenizer(BPE())
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = [] if merges_digits else [pre_tokenizers.Digits(individual_digits=True)]
    backend.pre_tokenizer = pre_tokenizers.Sequence([*digits, split])
    backend.decoder = decoders.ByteLevel()
    text = (data.folder() / "prose.txt").read_text().splitlines() + [str(n) for n in range(1000)] + ["1" * 64]
    special = ["<end>"] if merges_digits else [BOS, "<end>"]
    trainer = BpeTrainer(
        vocab_size=1500,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(text, trainer)
    names = {"eos_token": "<end>"} | ({} if merges_digits else {"bos_token": BOS})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **names)
    if merges_digits:
        tokenizer.chat_template = "{% for m in messages %}User: {{ m['content'] }}\n{% endfor %}Assistant: "
    return tokenizer
