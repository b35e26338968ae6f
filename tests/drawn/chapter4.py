"""Calls of chapter 4's figures and tables, each with its cheapest arguments."""

from unittest import mock

from course.chapter4 import figures, measures, run_selection
from course.runs import asked, trained
from course.training import checkpoints
from helpers import data


def _answers():
    return asked.long(data.table("counting_smollm2"))


def _asked(line: str):
    """What `ask` hands to the model, and makes of an answer that repeats it."""
    with mock.patch.object(
        asked, "write", lambda model, prompts, new, begun: [f"{begun} 7 of {new}" for _ in prompts]
    ):
        return asked.ask(None, "ones", "no CoT", line, lengths=[3, 5])


CALLS = {
    "figures.copies": figures.copies,
    "figures.readout": figures.readout,
    "figures.by_bits": lambda: figures.by_bits(lambda bits: 1.9**bits),
    "figures.reported": lambda: figures.reported(300),
    "figures.always_one_number": lambda: figures.always_one_number(150),
    "figures.bases": lambda: figures.bases(1000),
    "figures.asked_errors": lambda: figures.asked_errors(_answers(), "ones", "own", "a model"),
    **{
        f"figures.counting_by_length, {group}": lambda group=group: figures.counting_by_length(
            data.table("counting_trained"), group
        )
        for group in trained.GROUPS
    },
    "figures.copying_link": lambda: figures.copying_link(
        checkpoints.load("copying"), "last", "0", "RoPE"
    ),
    "figures.copying_turns": lambda: figures.copying_turns(data.table("copying_trained"), "last"),
    "figures.copying_ends": lambda: figures.copying_ends(data.table("copying_trained")),
    "figures.three_readouts": lambda: figures.three_readouts(data.table("counting_readers")),
    "figures.counters_read": lambda: figures.counters_read(
        data.table("counting_readers"), data.table("counting_moved"), "RoPE"
    ),
    **{
        f"figures.within_training, {what}": lambda what=what: figures.within_training(
            data.table("counting_inside"), what
        )
        for what in figures.INSIDE
    },
    "measures.hidden_letters": lambda: measures.hidden_letters(strings=20),
    "measures.answers": measures.answers,
    "measures.base_intervals": lambda: measures.base_intervals(1000),
    "asked.ask, own": lambda: _asked("own"),
    "asked.ask, begun": lambda: _asked("begun"),
    "counters.first_against_last": lambda: run_selection.first_against_last(
        data.table("copying_trained")
    ),
}
WITHOUT: set[str] = set()
