"""Let a language model count, with the four tasks and three strategies of Barbero et al. (2024).

The answers are in `data/counting_smollm2.csv`.
"""

import functools
import re
from collections.abc import Sequence

import pandas as pd
import torch

from course.maths import counting
from course.runs import sweep
from helpers import compute, data, models
from helpers.models import LanguageModel

LENGTHS = (3, 5, 10, 50, 100)
# The largest number of tokens in an answer. For 100 items, the steps in the form of the worked
# examples take about 360 tokens, and writing the string again takes 100.
NEW = {"no CoT": 160, "CoT zero-shot": 400, "CoT few-shot": 400}
NEW_BEGUN = 128
# the start of the answer line, for a model that does not write it
BEGUN = "The final answer to your maths question is:"
LINES = {
    "own": "the model writes the answer line",
    "begun": "the answer line is begun for the model",
}
GUESS = 100  # the baseline of a model that always says 100


@torch.inference_mode()
def write(
    model: LanguageModel, prompts: Sequence[str], new: int, begun: str = "", together: int = 3
) -> list[str]:
    """Generate the model's greedy answer to each prompt.

    The prompts run in batches with a key-value cache, and are padded on the left. A model with a
    chat template receives each prompt as a user's message. If an answer was cut off, we put "…" at
    its end, because half a number does not count.

    Args:
        new: the largest number of tokens in an answer.
        begun: the text with which each answer begins, and which the model continues.
        together: the number of prompts in a batch.
    """
    tokenizer, network = model.tokenizer, model.model
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    if tokenizer.chat_template:
        prompts = [
            tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
            for chat in chats
        ]
    rows = [tokenizer(text + begun, add_special_tokens=False)["input_ids"] for text in prompts]
    end = network.generation_config.eos_token_id or tokenizer.eos_token_id
    ends = end if isinstance(end, list) else [end]
    if tokenizer.eos_token_id not in ends:
        ends = [*ends, tokenizer.eos_token_id]

    def read(chunk: int) -> list[str]:
        written = []
        for start in compute.progress(range(0, len(rows), chunk), "answers"):
            part = rows[start : start + chunk]
            longest = max(map(len, part))
            ids = torch.tensor([[ends[0]] * (longest - len(row)) + row for row in part])
            attended = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in part])
            out = network.generate(
                ids.to(network.device), attention_mask=attended.to(network.device),
                max_new_tokens=new, do_sample=False, eos_token_id=ends, pad_token_id=ends[0],
                temperature=None, top_p=None, top_k=None,
            )  # fmt: skip
            for row in out[:, longest:].cpu():
                whole = bool(torch.isin(row, torch.tensor(ends)).any())
                written.append(
                    begun + tokenizer.decode(row, skip_special_tokens=True) + ("" if whole else "…")
                )
        return written

    return compute.shrink(read, together)


def ask(
    model: LanguageModel,
    task: str,
    strategy: str,
    line: str = "own",
    lengths: Sequence[int] = LENGTHS,
    seed: int = 0,
) -> pd.DataFrame:
    """Ask a model one counting question for each length, and return a table with its answers.

    Args:
        line: "own" lets the model write the line with its answer. "begun" begins this line for the
            model, so that the model only has to write the number.

    Returns:
        One row per length, with the right count, the text and the answer that was read from the
            text. The answer is missing if the text has none. `cut` is true if the text was cut off
            before an answer.
    """
    begun, new = ("", NEW[strategy]) if line == "own" else (BEGUN, NEW_BEGUN)
    samples = [counting.make(task, n, seed) for n in lengths]
    prompts = [counting.prompt(task, strategy, sample.sequence) for sample in samples]
    texts = write(model, prompts, new, begun)
    answers = pd.array([counting.parse_answer(text) for text in texts], dtype="Int64")
    cut = [text.endswith("…") for text in texts] & answers.isna()
    counts = [sample.count for sample in samples]
    return pd.DataFrame(
        {"length": list(lengths), "count": counts, "answer": answers, "cut": cut, "text": texts}
    )


def run(model: str, task: str, strategy: str, line: str, seed: int) -> sweep.Setting:
    """Ask a model one question at each of `LENGTHS`, and return one row of the table.

    The row has the answer for each length, and says which answers were cut off.
    """
    answered = ask(_loaded(model), task, strategy, line, seed=seed)
    answers = [None if pd.isna(answer) else int(answer) for answer in answered.answer]
    cut = [int(value) for value in answered.cut]
    row = {f"answer_{n}": answer for n, answer in zip(LENGTHS, answers, strict=True)}
    return row | {f"cut_{n}": value for n, value in zip(LENGTHS, cut, strict=True)}


_models: dict[str, LanguageModel] = {}


def _loaded(name: str) -> LanguageModel:
    if name not in _models:
        _models.clear()
        _models[name] = models.load(name, dtype="bf16")
    return _models[name]


def long(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with one row per answer.

    The columns are the task, strategy, answer line, seed, length, right count, answer, error of the
    answer, and whether the answer was cut off.
    """
    rows = []
    for row in table.to_dict("records"):
        for n in LENGTHS:
            count = counting.make(row["task"], n, int(row["seed"])).count
            rows.append(
                {k: row[k] for k in ("task", "strategy", "line", "seed")}
                | {"length": n, "count": count}
            )
            rows[-1] |= {"answer": row[f"answer_{n}"], "cut": bool(row[f"cut_{n}"])}
    long_table = pd.DataFrame(rows)
    long_table["answer"] = long_table.answer.astype("Float64").astype("Int64")
    long_table["error"] = (long_table.answer - long_table["count"]).abs()
    return long_table


@functools.cache
def questions(
    model: LanguageModel, task: str, line: str, lengths: tuple[int, ...] = LENGTHS
) -> pd.DataFrame:
    """Ask a model the questions of one task, one per length, without worked examples.

    The result has the columns of `long`.
    """
    answered = ask(model, task, "no CoT", line, lengths).drop(columns="text")
    answered = answered.assign(task=task, strategy="no CoT", line=line, seed=0)
    return answered.assign(error=(answered.answer - answered["count"]).abs())


def asked_of(model: LanguageModel | None = None) -> pd.DataFrame:
    """Return a model's answers to the counting tasks in the columns of `long`.

    For the embedded model, which is also the meaning of `None`, the answers come from the committed
    table. Any other model answers each task without worked examples. It does so twice: once it
    writes the line with the answer itself, and once we begin this line.
    """
    if model is None or model.name == models.DEFAULT:
        return long(data.table("counting_smollm2"))
    return pd.concat(
        [questions(model, task, line) for task in counting.TASKS for line in LINES],
        ignore_index=True,
    )


def from_examples(answers: pd.DataFrame) -> tuple[int, int]:
    """Count the answers that only repeat an answer of the worked examples in the prompt.

    Returns:
        The number of answers that repeat an example's answer, and the number of all answers after
            worked examples.
    """
    numbers = answers[answers.strategy == "CoT few-shot"].dropna(subset="answer")
    shown = {
        task: {int(x) for x in re.findall(rf"{BEGUN} (\d+)", text)}
        for task, text in counting.EXAMPLES.items()
    }
    return sum(int(row.answer) in shown[row.task] for row in numbers.itertuples()), len(numbers)


def without_examples(answers: pd.DataFrame) -> tuple[int, int, int]:
    """Count the answers without worked examples that copy the string or end in zero.

    Returns:
        Three numbers: the answers that are the string itself, the answers that end in zero, and all
            answers without worked examples.
    """
    numbers = answers[answers.strategy != "CoT few-shot"].dropna(subset="answer")
    strings = [
        counting.make(row.task, row.length, int(row.seed)).sequence for row in numbers.itertuples()
    ]
    back = sum(
        text.isdigit() and int(text) == answer
        for text, answer in zip(strings, numbers.answer, strict=True)
    )
    return back, int((numbers.answer % 10 == 0).sum()), len(numbers)
