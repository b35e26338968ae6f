"""Convert a GGUF file of a Llama-type model to a form that transformers can read.

The result consists of weights, a configuration and a tokenizer.
"""

import errno
from pathlib import Path

import gguf
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

_LAYER = {
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


def convert(source: Path, folder: Path, initializer_range: float) -> None:
    """Convert the Llama-type GGUF file `source` to a dense fp32 model and tokenizer in `folder`.

    A GGUF file does not contain the standard deviation of the initial weights, which we need for
    drawing a network with random weights. The caller therefore passes it as `initializer_range`,
    from the model's published configuration.

    transformers can read GGUF, too, and a test confirms that its weights equal ours bit for bit.
    However, transformers takes 20 seconds of processor time for the default model, whereas this
    function takes 6. Also, the tokenizer that transformers builds does not split numbers into
    digits.

    Raises:
        OSError: if the disk is full.
    """
    from transformers import GenerationConfig

    reader = gguf.GGUFReader(source)
    facts = {key: field.contents() for key, field in reader.fields.items()}
    folder.mkdir()
    config = _config(facts, initializer_range)
    config.save_pretrained(folder)
    GenerationConfig.from_model_config(config).save_pretrained(folder)
    _tokenizer(facts).save_pretrained(folder)
    weights = {_torch_name(tensor.name): _dense(tensor, config) for tensor in reader.tensors}
    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:
        full = f"os error {errno.ENOSPC}" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None


def _config(facts: dict, initializer_range: float) -> "transformers.LlamaConfig":
    from transformers import LlamaConfig

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
        initializer_range=initializer_range,
        bos_token_id=facts["tokenizer.ggml.bos_token_id"],
        eos_token_id=facts["tokenizer.ggml.eos_token_id"],
        pad_token_id=facts["tokenizer.ggml.padding_token_id"],
        architectures=["LlamaForCausalLM"],
        dtype="float32",
    )


def _torch_name(name: str) -> str:
    whole = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
    }
    if name in whole:
        return whole[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{_LAYER[part]}.weight"


def _dense(tensor: gguf.ReaderTensor, config: "transformers.LlamaConfig") -> torch.Tensor:
    dense = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for part, count in heads.items():
        # GGUF stores the two halves of a rotary pair next to each other
        if f".{part}." in tensor.name:
            dense = dense.unflatten(0, (count, -1, 2)).transpose(1, 2).reshape(dense.shape)
    return dense.contiguous()


def _tokenizer(facts: dict) -> "transformers.PreTrainedTokenizerFast":
    """Build the byte-level BPE tokenizer that a GGUF file describes.

    SmolLM has a rule that splits numbers into digits. The file contains only the name of this rule,
    so we add the rule itself here.
    """
    from transformers import PreTrainedTokenizerFast

    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in facts["tokenizer.ggml.merges"]]
    backend = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    control = [
        i
        for i, kind in enumerate(facts["tokenizer.ggml.token_type"])
        if kind == gguf.TokenType.CONTROL
    ]
    backend.add_special_tokens(
        [AddedToken(tokens[i], normalized=False, special=True) for i in control]
    )
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
