"""Export decoders for a browser.

The language model becomes an ONNX graph whose inputs include rotary tables, mask and heads.
`language_model` uses a GGUF file's blocks as they are: 4-bit weights w = d q + m (Q4_1) and bytes w
= d q (Q8_0), with one q per weight and fp16 d, m per 32 weights. ONNX Runtime's MatMulNBits
computes sum d (q - 8) x. The missing (m + 8 d) times the sum of x over a block is a small dense
product, so nothing is rounded again. `course_decoder` exports a `transformer.Decoder`, which is so
small that a page can run it without ONNX.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

from helpers import require
from helpers.transformer import Block, Decoder, _alibi_slopes

if TYPE_CHECKING:
    import onnx

BLOCK = 32  # the number of weights with one scale
OPSET = 18
IR = 10
MICROSOFT = "com.microsoft"


class _Graph:
    """Hold an ONNX graph under construction.

    Each call adds a node and returns the name of its output.
    """

    def __init__(self) -> None:
        import onnx  # the lessons do not need this package

        self.onnx, self.nodes, self.weights, self.named = onnx, [], [], {}

    def __call__(
        self,
        operator: str,
        *inputs: str,
        outputs: int = 1,
        name: str = "",
        domain: str = "",
        **how: Any,
    ):
        names = [name or f"{operator}_{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), names, domain=domain, **how)
        )
        return names[0] if outputs == 1 else names

    def weight(self, array: np.ndarray) -> str:
        """Add a constant to the graph. Equal small constants are stored once."""
        key = (
            (array.dtype.str, array.shape, array.tobytes())
            if array.size <= 16
            else len(self.weights)
        )
        if key not in self.named:
            self.named[key] = f"weight_{len(self.weights)}"
            self.weights.append(
                self.onnx.numpy_helper.from_array(np.array(array, order="C"), self.named[key])
            )
        return self.named[key]

    def numbers(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.weight(np.array(value, np.float32))

    def finished(
        self, inputs: dict[str, tuple[str, list]], outputs: dict[str, list], about: str
    ) -> "onnx.ModelProto":
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        typed = {"int64": kinds.INT64, "float": kinds.FLOAT}
        graph = helper.make_graph(
            self.nodes,
            "decoder",
            [
                helper.make_tensor_value_info(name, typed[kind], shape)
                for name, (kind, shape) in inputs.items()
            ],
            [
                helper.make_tensor_value_info(name, kinds.FLOAT, shape)
                for name, shape in outputs.items()
            ],
            self.weights,
        )
        sets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(
            graph,
            opset_imports=sets,
            ir_version=IR,
            producer_name="connection-bottlenecks",
            doc_string=about,
        )


# The language model -------------------------------------------------------------------------------


def language_model(source: str | Path) -> "onnx.ModelProto":
    """Build the ONNX graph of a Llama-type GGUF file.

    The file must have Q4_1 linear weights and a tied Q8_0 embedding.

    Let n be the number of new tokens after p cached ones, t = p + n, L the number of layers, H of
    heads, and K of key heads. The width is d, and a head's width is w. The inputs are: `ids` (n,);
    `cos` and `sin` (n, w), the rotary tables, with the halves of a pair w/2 apart; `bias` (n, t),
    added to all logits; `gain` (L, H), a factor for each head's output; `past` (L, 2, K, 1, p, w),
    keys and values; `rows` (r,), the tokens whose next-token logits are wanted. The outputs are:
    `logits` (r, v); `attentions` (L, H, n, t); `states` (L + 1, n, d), the last one after the final
    norm; `present` (L, 2, K, 1, t, w), the past of the next call.

    Raises:
        ValueError: if `source` is not the path of such a file.

    >>> language_model("nowhere.gguf")
    Traceback (most recent call last):
    ValueError: source must be the path of a GGUF file, but there is none at 'nowhere.gguf'
    """
    path = Path(require.instance("source", source, str | Path, "the path of a GGUF file"))
    if not path.is_file():
        raise ValueError(
            f"source must be the path of a GGUF file, but there is none at {str(source)!r}"
        )
    try:
        reader = gguf.GGUFReader(path)
    except ValueError as error:
        raise ValueError(f"source must be a GGUF file: {error}") from None
    facts = {
        key: field.contents()
        for key, field in reader.fields.items()
        if key.startswith(("llama.", "general."))
    }
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    if facts.get("general.architecture") != "llama" or "output.weight" in tensors:
        raise ValueError("source must be a Llama-type GGUF file with tied embeddings")
    layers, width = facts["llama.block_count"], facts["llama.embedding_length"]
    heads, groups = facts["llama.attention.head_count"], facts["llama.attention.head_count_kv"]
    size, epsilon = width // heads, facts["llama.attention.layer_norm_rms_epsilon"]
    g = _Graph()
    table, scale, vocabulary = _bytes(g, tensors["token_embd.weight"])
    x = _embedded(g, table, scale, width)
    attentions, states, presents = [], [x], []
    for layer in range(layers):
        parts = {
            name.split(".")[2]: tensor
            for name, tensor in tensors.items()
            if name.startswith(f"blk.{layer}.")
        }
        normed = _rms(g, x, parts["attn_norm"].data, epsilon)
        rows = {"attn_q": _order(heads, size), "attn_k": _order(groups, size), "attn_v": None}
        qkv = _linear(g, normed, [(parts[name], order) for name, order in rows.items()])
        split = g(
            "Transpose", g("Reshape", qkv, g.numbers(-1, heads + 2 * groups, size)), perm=[1, 0, 2]
        )
        turning, values = g("Split", split, g.numbers(heads + groups, groups), outputs=2, axis=0)
        queries, keys = g("Split", _turned(g, turning), g.numbers(heads, groups), outputs=2, axis=0)
        past = g("Gather", "past", g.weight(np.array(layer)), axis=0)
        both = []
        for k, new in enumerate((keys, values)):
            old = g("Gather", past, g.weight(np.array(k)), axis=0)
            both.append(g("Concat", old, g("Unsqueeze", new, g.numbers(1)), axis=2))
        presents.append(
            g(
                "Unsqueeze",
                g("Concat", *(g("Unsqueeze", part, g.numbers(0)) for part in both), axis=0),
                g.numbers(0),
            )
        )
        grouped = g(
            "Reshape",
            g("Mul", queries, g.number(size**-0.5)),
            g.numbers(groups, heads // groups, -1, size),
        )
        logits = g("Add", g("MatMul", grouped, g("Transpose", both[0], perm=[0, 1, 3, 2])), "bias")
        weights = g("Softmax", logits, axis=-1)
        attentions.append(g("Unsqueeze", weights, g.numbers(0)))
        mixed = g("Reshape", g("MatMul", weights, both[1]), g.numbers(heads, -1, size))
        gain = g(
            "Reshape",
            g("Gather", "gain", g.weight(np.array(layer)), axis=0),
            g.numbers(heads, 1, 1),
        )
        mixed = g(
            "Reshape", g("Transpose", g("Mul", mixed, gain), perm=[1, 0, 2]), g.numbers(-1, width)
        )
        x = g("Add", x, _linear(g, mixed, [(parts["attn_output"], None)]))
        normed = _rms(g, x, parts["ffn_norm"].data, epsilon)
        inner = _linear(g, normed, [(parts["ffn_gate"], None), (parts["ffn_up"], None)])
        gate, up = g("Split", inner, outputs=2, axis=-1, num_outputs=2)
        silu = g("Mul", gate, g("Sigmoid", gate))
        x = g("Add", x, _linear(g, g("Mul", silu, up), [(parts["ffn_down"], None)]))
        states.append(x)
    states[-1] = _rms(g, x, tensors["output_norm.weight"].data, epsilon)
    chosen = g("Gather", states[-1], "rows", axis=0)
    g("MatMulNBits", chosen, table, g("Reshape", scale, g.numbers(-1)), name="logits",
      domain=MICROSOFT, K=width, N=vocabulary, bits=8, block_size=BLOCK)  # fmt: skip
    maps = g("Concat", g.numbers(layers, heads), g("Shape", "bias"), axis=0)
    g("Reshape", g("Concat", *attentions, axis=0), maps, name="attentions")
    g("Concat", *(g("Unsqueeze", state, g.numbers(0)) for state in states), name="states", axis=0)
    g("Concat", *presents, name="present", axis=0)
    floats = {"cos": ["n", size], "sin": ["n", size], "bias": ["n", "t"], "gain": [layers, heads],
              "past": [layers, 2, groups, 1, "p", size]}  # fmt: skip
    inputs = {
        "ids": ("int64", ["n"]),
        "rows": ("int64", ["r"]),
        **{k: ("float", v) for k, v in floats.items()},
    }
    outputs = {
        "logits": ["r", vocabulary],
        "attentions": [layers, heads, "n", "t"],
        "states": [layers + 1, "n", width],
        "present": [layers, 2, groups, 1, "t", size],
    }
    return g.finished(
        inputs, outputs, f"{facts.get('general.name', path.stem)}, blocks of {path.name}"
    )


def _order(heads: int, size: int) -> np.ndarray:
    """Return the order of a projection's rows that puts the halves of a pair size/2 apart.

    The pairs are rotary pairs. GGUF stores their two halves next to each other.
    """
    return np.arange(heads * size).reshape(heads, size // 2, 2).transpose(0, 2, 1).reshape(-1)


def _raw(tensor: gguf.ReaderTensor, kind: str, bytes_a_block: int) -> np.ndarray:
    if tensor.tensor_type.name != kind:
        raise ValueError(f"source must hold {tensor.name} as {kind}, not {tensor.tensor_type.name}")
    return tensor.data.reshape(tensor.data.shape[0], -1, bytes_a_block)


def _linear(g: _Graph, x: str, parts: Sequence[tuple[gguf.ReaderTensor, np.ndarray | None]]) -> str:
    """Add to the graph the product of x with one matrix or several stacked matrices.

    The matrices are Q4_1 blocks.
    """
    raw = np.concatenate(
        [
            _raw(tensor, "Q4_1", 20)[slice(None) if order is None else order]
            for tensor, order in parts
        ]
    )
    rows, blocks, _ = raw.shape
    scale, least = (raw[..., k : k + 2].copy().view(np.float16)[..., 0] for k in (0, 2))
    q = np.concatenate([raw[..., 4:] & 15, raw[..., 4:] >> 4], axis=-1)
    packed = q[..., ::2] | q[..., 1::2] << 4
    d = g("Cast", g.weight(scale.reshape(-1)), to=1)
    quick = g(
        "MatMulNBits",
        x,
        g.weight(packed),
        d,
        domain=MICROSOFT,
        K=blocks * BLOCK,
        N=rows,
        bits=4,
        block_size=BLOCK,
    )
    sums = g("ReduceSum", g("Reshape", x, g.numbers(-1, blocks, BLOCK)), g.numbers(2), keepdims=0)
    m = g("Cast", g.weight(least), to=1)
    offset = g("Add", m, g("Mul", g("Reshape", d, g.numbers(rows, blocks)), g.number(8.0)))
    return g("Add", quick, g("MatMul", sums, g("Transpose", offset, perm=[1, 0])))


def _bytes(g: _Graph, tensor: gguf.ReaderTensor) -> tuple[str, str, int]:
    """Return the embedding's Q8_0 blocks as bytes q + 128 and scales.

    The bytes have shape (v, blocks, 32), and the scales have shape (v, blocks).
    """
    raw = _raw(tensor, "Q8_0", 34)
    scale = raw[..., :2].copy().view(np.float16)[..., 0]
    return g.weight(raw[..., 2:] ^ 128), g("Cast", g.weight(scale), to=1), len(raw)


def _embedded(g: _Graph, table: str, scale: str, width: int) -> str:
    q = g("Sub", g("Cast", g("Gather", table, "ids", axis=0), to=1), g.number(128.0))
    d = g("Unsqueeze", g("Gather", scale, "ids", axis=0), g.numbers(-1))
    return g("Reshape", g("Mul", q, d), g.numbers(-1, width))


def _rms(g: _Graph, x: str, weight: np.ndarray, epsilon: float) -> str:
    square = g("ReduceMean", g("Mul", x, x), g.numbers(-1), keepdims=1)
    return g(
        "Mul",
        g("Div", x, g("Sqrt", g("Add", square, g.number(epsilon)))),
        g.weight(weight.astype(np.float32)),
    )


def _turned(g: _Graph, x: str) -> str:
    first, second = g("Split", x, outputs=2, axis=-1, num_outputs=2)
    return g(
        "Add", g("Mul", x, "cos"), g("Mul", g("Concat", g("Neg", second), first, axis=-1), "sin")
    )


# The course's own decoders ------------------------------------------------------------------------


def course_decoder(model: Decoder) -> dict[str, Any]:
    """Convert a decoder of the course to values that JSON can store.

    The values are the decoder's sizes, its frequencies or slopes, and its weights (fp32, base64).
    `frontend/live/decoder.js` reads them. The decoder has so few weights that a runtime for ONNX
    would be a hundred times larger.

    Raises:
        ValueError: if the decoder has absolute positions or another attention than softmax.

    >>> course_decoder(Decoder(10, 16, 2, 1))["layers"]
    1
    """
    require.instance("model", model, Decoder, "a Decoder")
    if model.encoding == "APE" or any(
        type(block) is not Block or block.weigh is not None for block in model.blocks
    ):
        raise ValueError(
            "model must have RoPE, ALiBi or no encoding, and softmax attention in every layer"
        )
    first = model.blocks[0]
    return {
        "width": model.embedding.embedding_dim,
        "heads": first.heads,
        "layers": len(model.blocks),
        "window": first.window,
        "frequencies": None if first.frequencies is None else first.frequencies.tolist(),
        "slopes": _alibi_slopes(first.heads).tolist() if model.encoding == "ALiBi" else None,
        "weights": {
            name: {
                "shape": list(weight.shape),
                "data": base64.b64encode(
                    weight.detach().cpu().float().numpy().astype("<f4").tobytes()
                ).decode(),
            }
            for name, weight in model.state_dict().items()
        },
    }
