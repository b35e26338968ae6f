"""Decoders of a few thousand random weights, one for each architecture that the course must read."""

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from helpers import compute, models

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
