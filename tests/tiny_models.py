"""Decoders of a few thousand random weights, one for each architecture that the course must read."""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

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
UNGROUPED = {
    name: value for name, value in LLAMA.items() if name not in ("head_dim", "num_key_value_heads")
}
# what is set in a configuration, by the name that transformers has for the family
FAMILIES = {
    "llama": LLAMA | {"tie_word_embeddings": True},
    "gemma": LLAMA | {"num_key_value_heads": 1},
    "gemma2": LLAMA | {"sliding_window": 8, "query_pre_attn_scalar": 16},
    "gemma3_text": LLAMA | {
        "sliding_window": 16, "query_pre_attn_scalar": 16, "layer_types": ["sliding_attention", "full_attention"],
    },
    "gpt2": UNGROUPED,
    "gptj": UNGROUPED | {"rotary_dim": 8},
    "gpt_neox": UNGROUPED | {"rotary_pct": 0.25},
    "phi": UNGROUPED | {"partial_rotary_factor": 0.5},
    "olmo": LLAMA | {"num_key_value_heads": 4},
    **dict.fromkeys(("qwen2", "qwen3", "cohere", "olmo2", "granite", "starcoder2", "glm", "diffllama"), LLAMA),
    "mistral": LLAMA | {"sliding_window": 32},
    "cohere2": LLAMA | {"sliding_window": 16, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "smollm3": LLAMA | {"no_rope_layers": [1, 1, 1, 0]},
    "gpt_oss": LLAMA | {
        "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    },
    "lfm2": UNGROUPED | {"num_key_value_heads": 2, "layer_types": ["conv", "full_attention"] * 2},
    "mamba": {"hidden_size": 64, "state_size": 8},
}  # fmt: skip
KINDS = (
    "llama",
    "qwen2",
    "gemma",
    "gemma2",
    "gpt2",
)  # one of each architecture that the probes must read


def tiny(
    kind: str,
    seed: int = 0,
    attention: str | None = None,
    tokenizer: PreTrainedTokenizerFast | None = None,
    **fields,
) -> models.LanguageModel:
    """A random decoder and its tokenizer.

    Args:
        kind: one of `FAMILIES`; of `KINDS` all but "gpt2" group their keys (`num_key_value_heads=4` undoes it).
        seed: of the weights.
        attention: "sdpa" or "eager", the first if none is given and the family has it; "gemma2" has only the second.
        tokenizer: with one token a byte, if none is given.
        fields: more of the configuration, such as `num_hidden_layers`.
    """
    tokenizer = tokenizer or byte_tokenizer()
    ids = {
        name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")
    }
    compute.seed(seed)
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), **(FAMILIES[kind] | ids | fields)
    )
    attention = "eager" if kind == "gemma2" else attention  # its soft caps have no fused form
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return models.LanguageModel(model.eval().requires_grad_(False), tokenizer)


def save(folder: Path, model: models.LanguageModel) -> Path:
    """A model and its tokenizer in a folder, as `save_pretrained` writes them."""
    for part in model:
        part.save_pretrained(folder)
    return folder


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, and a first token `<bos>` that must be asked for."""
    backend = Tokenizer(BPE(vocab={token: i for i, token in enumerate(VOCABULARY)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(BOS, special=True)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=BOS, eos_token=BOS, pad_token=BOS
    )


def prose_tokenizer(merges_digits: bool) -> PreTrainedTokenizerFast:
    """Byte-level BPE of 1,500 tokens; if it merges digits it has a chat template and an end-of-text token alone."""
    backend = Tokenizer(BPE())
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = [] if merges_digits else [pre_tokenizers.Digits(individual_digits=True)]
    backend.pre_tokenizer = pre_tokenizers.Sequence([*digits, split])
    backend.decoder = decoders.ByteLevel()
    text = (
        (data.folder() / "prose.txt").read_text().splitlines()
        + [str(n) for n in range(1000)]
        + ["1" * 64]
    )
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
        tokenizer.chat_template = (
            "{% for m in messages %}User: {{ m['content'] }}\n{% endfor %}Assistant: "
        )
    return tokenizer
