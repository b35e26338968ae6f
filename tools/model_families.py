"""Compare the report's description of models with an independent test.

We do so for every family of decoders in transformers.

    python tools/model_families.py --out data/model_families.csv    all families
    python tools/model_families.py llama mamba falcon_h1            some, printed to the terminal

All families take about ten minutes on two idle cores.

Each family is made tiny, with random weights and a smaller version of its default configuration.
The independent test, which we call the oracle, uses only torch and transformers, and does not
depend on the names of modules. It replaces attention by zeros and changes the first token. It
finds the furthest token with weight in the attention matrices. It stretches and shifts the
positions. It also tests whether the first token still has influence when it is hidden. A family
agrees if each answer equals that of `helpers.probe`. The column "refused" lists what the report
does not measure. If no model could be made, the column "differs" says why.
"""

import argparse
import contextlib
import csv
import datetime
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from helpers import compute, models, probe

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import tiny_models  # noqa: E402

COLUMNS = ("family", "result", "mixes", "window", "refused", "differs")
WINDOW, N, CONTEXT = 16, 48, 512
# fields of a configuration and their small values; the first names are those of most families
SMALL = {
    "hidden_size": 64,
    "n_embd": 64,
    "d_model": 64,
    "dim": 64,
    "intermediate_size": 96,
    "ffn_dim": 96,
    "n_inner": 96,
    "num_hidden_layers": 4,
    "n_layer": 4,
    "n_layers": 4,
    "num_attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_key_value_heads": 2,
    "num_kv_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": CONTEXT,
    "n_positions": CONTEXT,
    "max_seq_len": CONTEXT,
    "sliding_window": WINDOW,
    "attention_chunk_size": WINDOW,
    "attention_window_size": WINDOW,
    "num_local_experts": 4,
    "num_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_topk": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 32,
    "expert_ffn_hidden_size": 32,
    "shared_expert_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "qk_head_dim": 16,
    "index_topk": 64,
    "rotary_dim": 8,
    "query_pre_attn_scalar": 16,
    "word_embed_proj_dim": 64,
    "expert_layer_period": 2,
    "lru_width": 64,
    "mamba_d_state": 8,
    "mamba_n_heads": 4,
    "mamba_d_head": 32,
    "mamba_d_ssm": 128,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
    "mamba_dt_rank": 4,
    "ssm_state_size": 8,
    "mamba_num_heads": 4,
    "mamba_head_dim": 32,
    "n_groups": 1,
    "chunk_size": 8,
    "state_size": 8,
    "num_heads": 4,
    "time_step_rank": 4,
    "expand": 2,
    "attention_hidden_size": 64,
    "conv_dim": 64,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "vocab_size_per_layer_input": 257,
    "hidden_size_per_layer_input": 8,
    "num_kv_shared_layers": 0,
    "conv_L_cache": 3,
    "max_window_layers": 2,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "global_attn_every_n_layers": 2,
}
ATTENTION = ("attention", "the difference of two attention maps")
SECTIONS = ("sinks", "hiding", "heads", "frequencies", "base")


def shrunk(family: str) -> transformers.PreTrainedConfig:
    """Return a small version of a family's default configuration."""
    plain = transformers.AutoConfig.for_model(family)
    fields = {
        name: value for name, value in SMALL.items() if getattr(plain, name, None) is not None
    }
    fields["sliding_window"] = (
        WINDOW if hasattr(plain, "sliding_window") and plain.sliding_window else None
    )
    if fields["sliding_window"] is None:
        del fields["sliding_window"]
    kinds = getattr(plain, "layer_types", None)
    if kinds:
        fields["layer_types"] = ([*dict.fromkeys(kinds)] * 4)[:4]  # each kind at least once
    ids = {"vocab_size": 257, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    try:
        return transformers.AutoConfig.for_model(family, **(fields | ids | OWN.get(family, {})))
    except AttributeError:  # kinds of layers that follow from other fields
        fields.pop("layer_types", None)
        return transformers.AutoConfig.for_model(family, **(fields | ids | OWN.get(family, {})))


# all heads share a state from which their keys are computed, so they have no shared keys
LATENT = ("kimi_linear", "bailing_hybrid", "axk1", "axk2", "deepseek_v2", "deepseek_v3")
# further settings for single families
OWN: dict[str, dict[str, Any]] = {
    "phi3": {"pad_token_id": 0},
    "falcon": {"new_decoder_architecture": False, "multi_query": False},
    **{name: {"num_key_value_heads": 4} for name in LATENT},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "llama4_text": {"no_rope_layers": [1, 0, 1, 0]},
    "jamba": {"use_mamba_kernels": False},
    "zamba": {"use_mamba_kernels": False},
    "bamba": {"attn_layer_indices": [1, 3]},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
}


def make(family: str) -> models.LanguageModel:
    """Return a random decoder of a model family."""
    compute.seed(0)
    network = transformers.AutoModelForCausalLM.from_config(shrunk(family))
    network.config._name_or_path = family
    return models.LanguageModel(
        network.float().eval().requires_grad_(False), tiny_models.byte_tokenizer()
    )


def cut(
    module, query: Tensor, key: Tensor, value: Tensor, attention_mask, **settings
) -> tuple[Tensor, None]:
    """Return zeros instead of attention."""
    CUT.append(module)
    return query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[-1]), None


CUT: list = []


@torch.no_grad()
def logits(network, ids: Tensor, **named) -> Tensor:
    """Return the logits of a network for one sequence, in fp32."""
    return network(ids[None], use_cache=False, **named).logits[0].float()


def moved(first: Tensor, second: Tensor) -> bool:
    """Return whether two hidden states differ by more than rounding error."""
    return float((first - second).abs().max()) > 1e-5 * max(float(first.abs().max()), 1e-6)


class Oracle:
    """Hold the results of the experiments on one model."""

    def __init__(self, model: models.LanguageModel):
        self.network = model.model
        self.ids = torch.randint(1, 250, (N,), generator=torch.Generator().manual_seed(1))
        self.changed = self.ids.clone()
        self.changed[0] = 251

    def mixes_otherwise(self) -> bool | None:
        """Return whether the first token influences the last one while all attention is zero.

        The result is None if we cannot replace attention.
        """
        transformers.AttentionInterface.register("oracle_cut", cut)
        transformers.AttentionMaskInterface.register(
            "oracle_cut", transformers.masking_utils.sdpa_mask
        )
        CUT.clear()
        with self.attending("oracle_cut"):
            arrives = moved(
                logits(self.network, self.ids)[1:], logits(self.network, self.changed)[1:]
            )
        return arrives if CUT else None

    @contextlib.contextmanager
    def attending(self, name: str):
        before = self.network.config._attn_implementation
        self.network.set_attn_implementation(name)
        try:
            yield
        finally:
            self.network.set_attn_implementation(before)

    def furthest(self) -> list[int] | None:
        """Return for each layer how many positions back the furthest token with any weight is.

        Only layers with attention matrices count. The result is None if there are none.
        """
        with self.attending("eager"), torch.no_grad():
            out = self.network(self.ids[None], use_cache=False, output_attentions=True)
        maps = getattr(out, "attentions", None)
        maps = [
            attention
            for attention in maps or ()
            if isinstance(attention, Tensor) and attention.shape[-1] == N
        ]
        places = torch.arange(N)[:, None] - torch.arange(N)
        return [int(places[(attention[0] > 0).any(0)].max()) for attention in maps] or None

    def rotary(self) -> bool | None:
        """Return whether the output depends only on distances between positions.

        The result is None if the model takes no positions.
        """
        try:
            places, all_ones = (
                1 + torch.arange(N)[None],
                torch.ones(1, N, dtype=torch.long),
            )  # otherwise gaps start a new text
            plain, shifted, stretched = (
                logits(self.network, self.ids, position_ids=p, attention_mask=all_ones)[-1]
                for p in (places, places + 3, 2 * places)
            )
        except (TypeError, ValueError, IndexError):
            return None
        return (
            moved(plain, stretched)
            and float((plain - shifted).abs().max()) < float((plain - stretched).abs().max()) / 10
        )

    def heard_though_hidden(self, model: models.LanguageModel) -> bool | None:
        """Return whether the first token changes the last state inside `probe.attention_knockout`.

        The result is None if the knockout is refused.
        """
        try:
            with probe.attention_knockout(model, 0):
                return moved(
                    logits(self.network, self.ids)[1:], logits(self.network, self.changed)[1:]
                )
        except ValueError:
            return None


def compared(model: models.LanguageModel) -> list[str]:
    """Return the points in which the course's description of a model differs from the oracle's."""
    oracle, layers, differs = Oracle(model), probe.layers(model), []
    otherwise, says_otherwise = (
        oracle.mixes_otherwise(),
        any(layer.mixes not in ATTENTION for layer in layers),
    )
    if otherwise is not None and otherwise != says_otherwise:
        differs.append(f"something else mixes: {otherwise}, and said: {says_otherwise}")
    if oracle.heard_though_hidden(model):
        differs.append("a hidden token is heard")
    read = [layer for layer in layers if layer.read]
    spans = oracle.furthest()
    if spans and len(spans) == len(read):
        said_windows = [(layer.window or N) - 1 for layer in read]
        distances = [min(layer, N - 1) for layer in spans]
        if distances != [min(layer, N - 1) for layer in said_windows]:
            differs.append(f"places seen: {distances}, and said: {said_windows}")
    rotary = oracle.rotary()
    turned = any(layer.theta is not None for layer in layers)
    if rotary is not None and read and rotary != turned:
        differs.append(f"rotary positions: {rotary}, and said: {turned}")
    if not says_otherwise:
        rows = probe.last_representations(model, oracle.ids)
        with torch.no_grad():
            plain = model.model(
                oracle.ids[None], use_cache=False, output_hidden_states=True
            ).hidden_states[-1][0]
        if moved(plain, rows):
            differs.append("states read in pieces are others")
    return differs


def refusals(model: models.LanguageModel) -> list[str]:
    """Return the sections of a report that are refused or that fail, each with the reason."""
    from course.report import runner
    from course.report.sections import SECTIONS as ALL
    from course.report.subject import PLANS, Subject

    load = Subject._load
    Subject._load = lambda self, dtype: model
    try:
        subject, reasons = Subject(model.name), []
    finally:
        Subject._load = load
    for name in SECTIONS:
        done = runner._measured(ALL[name], subject, PLANS[0])
        if done["status"] != "measured":
            reasons.append(f"{name}: {done['why']}")
    return reasons


def row(family: str) -> dict[str, str]:
    """Test one family, and return its row of the table."""
    cells = dict.fromkeys(COLUMNS, "") | {"family": family}
    try:
        model = make(family)
        logits(model.model, torch.arange(1, N))
    except Exception as error:
        return cells | {"result": "not made", "differs": _line(error)}
    try:
        layers = probe.layers(model)
        cells["mixes"] = ", ".join(dict.fromkeys(layer.mixes for layer in layers))
        cells["window"] = " ".join(str(layer.window or "all") for layer in layers)
        differs, refused = compared(model), refusals(model)
        cells["refused"] = "; ".join(refused)
        faults = [layer for layer in refused if "fault of the course" in layer]
        cells["differs"] = "; ".join(differs + faults)
        if differs or faults:
            cells["result"] = "differs"
        else:
            cells["result"] = "refused in part" if refused else "agrees"
    except ValueError as error:
        return cells | {"result": "refused", "refused": _line(error)}
    except Exception as error:
        return cells | {"result": "differs", "differs": f"{type(error).__name__}: {_line(error)}"}
    return cells


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def families() -> list[str]:
    """Return the model types of transformers' decoders."""
    return sorted(transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("families", nargs="*", help="model types to check (default: all)")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity(50)
    torch.set_num_threads(1)
    rows = []
    for family in options.families or families():
        rows.append(row(family))
        print(*(str(value)[:110] for value in rows[-1].values()), sep=" | ", flush=True)
        if options.out:
            write(options.out, rows)
    wrong = [result["family"] for result in rows if result["result"] == "differs"]
    sys.exit(f"{len(wrong)} families differ: {', '.join(wrong)}" if wrong else 0)


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the table with the rows that are finished."""
    text = io.StringIO()
    text.write(
        "# What the report says of each family's tiny random decoder, held against experiments "
        "that know no names\n"
    )
    text.write("# command: python tools/model_families.py --out data/model_families.csv\n")
    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    text.write(f"#   {today}, torch {torch.__version__}, transformers {transformers.__version__}\n")
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    path.write_text(text.getvalue())


if __name__ == "__main__":
    main()
