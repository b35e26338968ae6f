"""Define the protocol of the race, with its tasks, sizes and budget.

The comments record the decisions that we wrote down before the runs.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course.training import UNASKED, tasks
from course.training.tasks import Batch
from helpers import require


def counted(task: tasks.RunningCount, at_the_end: bool) -> Callable[[torch.Generator], Batch]:
    """Return the counting task with questions after every letter, or only at the end.

    Training has questions after every letter, and the test only at the end. With questions only at
    the end, none of six decoders of this size learned to count in 1,000 steps (0.81 to 0.90 right).
    The decoders of chapter 4 learn it in 2,560 steps (`data/counting_asked.csv`).
    """
    return (lambda generator: task.encode(task.strings(generator))) if at_the_end else task


SIZES = {
    "small": {"width": 32, "heads": 4, "layers": 2, "rate": 5e-3, "rows": 32},
    "twice": {"width": 64, "heads": 4, "layers": 4, "rate": 2.5e-3, "rows": 32},
    "wide": {"width": 256, "heads": 8, "layers": 6, "rate": 1e-3, "rows": 64},
}
BUDGET = SIZES["small"] | {"steps": 1000, "seeds": 15}
TRAINED, LENGTHS = 16, (16, 32, 64, 128)
LONGER = [f"score_{n}" for n in LENGTHS if n > TRAINED]
LOCAL = 8  # the window of the local layers, and the number of keys that sparse attention selects
EVERY = 4  # tokens between two separators
BITS = 4
TASKS = {
    "retrieval": lambda n, rows: tasks.Retrieval((n or 4, n or TRAINED), size=rows),
    "last": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("last",), rows),
    "recall": lambda n, rows: tasks.Recall((n or 4, n or TRAINED), size=rows),
    "first": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("first",), rows),
    "counting": lambda n, rows: counted(
        tasks.RunningCount((n or 1, n or TRAINED), most=TRAINED, size=rows), at_the_end=bool(n)
    ),
}
# an additional task, retrieval in which the number of competing keys grows with the length
RIVALS = "rivals"
EVERY_TASK = TASKS | {
    RIVALS: lambda n, rows: tasks.Rivals((n or 4, n or TRAINED), keys=LENGTHS[-1], size=rows)
}
# the accuracy without the answer, for a digit that of the more frequent one, which is right in 3 of
# 4 strings
CHANCE = {
    "retrieval": 1 / 4,
    "last": 3 / 4,
    "recall": 1 / 4,
    "first": 3 / 4,
    "counting": 1 / (TRAINED + 1),
    RIVALS: 1 / 4,
}
TESTED = {
    "retrieval": 64,
    "last": 128,
    "recall": 64,
    "first": 128,
    "counting": 128,
    RIVALS: 64,
}  # rows per length
# questions per length, where a row of retrieval or recall has 4 questions
ASKED = TESTED | {"retrieval": 4 * 64, "recall": 4 * 64, RIVALS: 4 * 64}
LOOKED = ("retrieval", "last", "recall")  # tasks in which we also look at attention
# tokens, only for evaluating entries that are right at the longest of `LENGTHS`
FAR = (512, 1024, 2048)
FAR_ROWS = 8

# Decisions, written down before the runs ----------------------------------------------------------
#
# We ask two questions, and the results have one column for each. `success` asks whether an entry is
# right. The entry must learn the task, at least a fraction KEPT of its answers at the longest
# length must be right (we show it with its 95% interval over the seeds), and its attention must
# stay on the answer (SHARP). The rule is the same for all entries. `gain` asks whether an entry is
# better than the decoder that it changes. It is the log odds of a right answer, as a mean over the
# lengths beyond the trained one. We compare it, paired by seed, with RoPE and with the decoder
# without the entry's one ingredient, with Holm's correction over the entries of a task. An
# ingredient *opens* a task if the entry succeeds and gains against the decoder without the
# ingredient, or if that decoder has not learned the task. There is no room if even an entry without
# any error could not be better than the reference by MARGIN.

# the accuracy at the trained length that counts as learned, on separate rows. A run that reaches it
# stops, and a run that does not reach it has not learned.
LEARNED = 0.98
# the fraction of a cell's seeds that must have learned. Otherwise the cell is "not learned", and we
# compare it at no length. If some seeds have not learned, we also give the fraction that has. (The
# value was 0.8 at first. Then all of three seeds had to learn, and an entry that learns in nine of
# ten runs misses this in 27% of the cases.)
CELL = 0.5
# the number of steps between two checks of the criterion. It is smaller in the runs with a fixed
# budget, which measure the training cost.
CHECKED, FINER = (100, 10)
# a difference in log odds. At an accuracy of one half it is a difference of 0.056, and near 1 it
# means a fifth fewer errors.
MARGIN = math.log(1.25)
LEVEL = 0.05  # the level of a test, after Holm's correction over the remedies of a task
KEPT = 0.9  # the accuracy at the longest length that counts as right
SHARP = 0.5  # the fraction of a row's attention on one token that we call extreme
EQUAL, NO_ROOM = "equal within 1.25", "no room"
VERDICTS = (
    "better",
    "worse",
    EQUAL,
    "inconclusive",
    NO_ROOM,
    "not learned",
    "reference not learned",
    "reference not run",
)
# The number of seeds follows rules and not results. We set it before we saw any run of an added
# entry. The cells of the first table have the 15 seeds of BUDGET. Added entries have 8 seeds at
# retrieval (`entries.NAMED`), 5 at the last copy (NAMED), and 3 in all other cells: at recall, for
# memories, sums and recurrent networks, at a fixed budget, if trained to 128, and beyond 128
# tokens. We raised some numbers later, when we knew the results of the first seeds. Every cell of
# the hybrid with scalable softmax has 15, because the conclusion mentions this entry. At recall,
# ALiBi and RoPE have 8, because ALiBi's first three seeds were at the bound, and stick-breaking has
# 15, because 4 of 8 had learned.
#
# To separate a design from its budget, we wrote down these rules before any row of `race_plateau`.
# Every run gets PLATEAU steps and is judged twice, when it first meets the criterion (the "first
# touch", as in the table above, with the same rows) and at the end. A sentence about a design is
# about the end, or about both. To define a "plateau", we subtract the mean over the third of the
# budget before the last third from the mean over the last third (with PARTS checks in all). The run
# is at a "plateau" if the 90% interval of this difference over the seeds is within STILL of zero,
# "still rising" if the interval is above that, and "not told" otherwise. We test beyond 128 tokens
# both times if at least a fraction KEPT is right at 128 at either time, as a mean over the seeds
# that are run together. A design "stays right" if both the mean and the low end of its 95% interval
# are at least KEPT, and is "at the bound" if only the mean is. There are five seeds, or eight if a
# sentence is about the cell, numbered 0, 1, ... A cell with fewer seeds says so. `race_price`
# measures the steps to the criterion at the trained length itself, with three seeds and at most
# PLATEAU steps. We wrote down the rule of `race_twice` before its first row. It has twice the
# width, four layers, retrieval and three seeds, and uses the state at the end. It is about all
# pairs of entries whose mean accuracies at 128 differ by 0.1 or more in the small size (at the end
# of `race_plateau`, or in `race` where it stopped if the entry has no such row). The order of a
# pair stands if the difference in the larger size has the same sign, and is "not told" if it is
# within 0.05 of zero. Whatever we had no time for is "not run", which opens nothing.
PLATEAU, PARTS, STILL = 3000, 6, 0.05

# We wrote down these rules for three learning rates before any row of `race_plateau` or
# `race_price` at a rate other than 0.005.
#
# The rate 0.005 was chosen for RoPE with softmax, and every table above has only this rate. So the
# entries that a sentence mentions run again at RATES, with the same decoders, batches, criterion
# and checks, and with PLATEAU steps each. The *same* runs are judged at the first touch and at the
# end. The seeds are 0 to 4, or 0 to 7 if a sentence depends on the cell. A cell with fewer seeds
# says so. Earlier rows at 0.005 stay, because they are the same runs.
#
# * The best rate of an entry at a task is chosen at the trained length only. It is the rate at
#   which the largest fraction of its runs learned. In a tie, it is the rate with the fewest steps
#   to the first touch on average (a run that has not learned counts with all of its steps). If
#   these are equal too, as for the last copy, it is the race's own rate. Scores at longer lengths
#   play no part in the choice. An entry for which fewer than two rates were run at a task (with
#   three seeds or more each) has no best rate there, and a sentence about it says "at a rate of
#   .005".
# * "Learns" and "price" (steps to the criterion) refer to the best rate. We say "does not learn"
#   only if all of RATES were run and at none of them half of the runs learned. Otherwise we say
#   "not learned at" with the rates.
# * "First touch" and "end" of a cell are means over the same runs, which are those that learned. We
#   give the fraction that learned next to them. `stays` is tested on the same runs at the end.
# * We say "goes far" (at least KEPT is right at 128) if this is true at the best rate both at the
#   first touch and at the end. If these two differ, the sentence says which of them it is about. If
#   another rate gives the opposite result, the sentence says which rate.
# * The order of two entries at 128 "stands at every rate" if the difference of the means at the end
#   has the same sign and at least the size STILL at each rate that was run for both. It "depends on
#   the rate" if the sign changes, and otherwise it is "inconclusive".
# * The price as a function of length comes from `race_price` at 0.005 and 0.002, with three seeds,
#   at the trained lengths of its table. An entry that learns at one of the two rates has learned. A
#   ratio of two entries' prices uses the best rate of each.
# * Cells for which we had no time are "not run", and no sentence is about them. The runs are made
#   in this order: first retrieval, recall and counting of the entries whose sentences could fail
#   (the hybrid, stick-breaking, NoPE, RoPE, the differential pairs), then the price, then the rest.
RATES = (0.001, 0.002, 0.005)
# We wrote down the rules for rivals before any row of `race_rivals`. The task is retrieval with as
# many keys as pairs, 128 in all, at the rates 0.005 and 0.002, with three seeds and PLATEAU steps,
# by the rules above. We say "a memory of fixed size fails with more rivals" if such an entry
# learned, stays right (KEPT) at 128 pairs of `retrieval` and falls at 128 pairs of `rivals`, while
# an entry with full attention stays right at both. The lengths FAR have no rows, because there are
# only 128 keys.
#
# We wrote down the plan for the third rate before any row at 0.001 and before any row of
# `race_window`. There was one core for about an hour, so there are three seeds (0 to 2) of PLATEAU
# steps, in the following order, and what is not reached is "not run": retrieval of the hybrid,
# NoPE, RoPE and stick-breaking; recall of stick-breaking and the hybrid (the hybrid at 0.002, too);
# counting of squared ReLU and NoPE (at 0.002, too); the pairs of `race_pairs`. The rules are those
# of RATES. If a sentence changes at 0.001, it says so, and "at every rate" refers to three rates
# only if all three were run. For windows, we run the hybrid with a window of WINDOWS tokens in the
# lower layer, and without a window, on retrieval at 0.005 and 0.002, with seeds 0 to 2 and 1,000
# steps, and check every FINER steps. The price is the number of steps to the first touch, as a mean
# over the runs, where a run that has not learned counts with all steps. We say "a larger window is
# learned later" (as 2606.15378 found in large hybrids) if the price rises from the smallest to the
# largest window by a quarter or more at both rates, "sooner" if it falls by as much at both, and
# otherwise "no order". We say "a larger window costs length" if the accuracy at 128 pairs after all
# steps is lower with the largest window than with the smallest by STILL or more at both rates, and
# "gains length" if it is higher. Otherwise we say "depends on the rate" or "inconclusive".
# Forgetting attention is an added entry, with seeds 0 to 2 at all five tasks of `race`, and in
# `race_plateau` at retrieval at 0.005 and 0.002. We wrote down what was still missing before its
# rows, with seeds 0 to 2: stick-breaking at retrieval at 0.002 and 0.001; counting of NoPE at 0.001
# and 0.002 and of squared ReLU at 0.001; forgetting attention at recall at 0.005 and 0.002; last
# copy and first copy of RoPE, NoPE, the hybrid and stick-breaking at 0.002. First copy has no run
# at another rate in `race_plateau`, so by the rules above its cells have no best rate until a
# second rate was run.
#
# We wrote down a second list before its rows, with seeds 0 to 2 and the rules above: first copy of
# the same four entries at 0.005, too, and last copy of RoPE and NoPE, so that these cells have two
# rates; forgetting attention at retrieval, recall and counting at all of RATES, and then last copy
# at 0.005 and 0.002; the hybrid and NoPE with scalable softmax at retrieval at 0.002 and 0.001, for
# the sentences about 2,048 tokens. What is not reached is "not run". In the end all of this list
# was run, and all of the list before it except stick-breaking at counting.
#
# Recall of NoPE and RoPE at 0.002 was run beyond both lists, so there is no rule for its verdicts.
# With these runs NoPE, about which theory makes a prediction, has two rates at all five tasks.
WINDOWS = (2, 4, 8, 16)


def vocabulary(task: str) -> tuple[str, ...]:
    """Return the tokens of a task and the separator.

    Every entry has the separator in its vocabulary, although only one entry uses it.

    Raises:
        ValueError: if the task is unknown.
    """
    return (*EVERY_TASK[require.choice("task", task, EVERY_TASK)](None, 1).vocabulary, "|")


def roles(
    task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]
) -> tuple[Bool[Tensor, "b n n"], ...]:
    """Mark for each question which tokens are the answer and which tokens are noise.

    Noise consists of the tokens that could have been the answer, such as other pairs or other
    digits. In counting, each y belongs to the answer, and each x is noise.
    """
    words = vocabulary(task)
    number = {word: k for k, word in enumerate(words)}
    asked = (targets != UNASKED)[:, :, None]
    n = ids.shape[1]
    if task == "retrieval":
        pair = ids >= len(words) - 1 - tasks.Retrieval().keys * tasks.Retrieval().values
        content = pair & (ids < len(words) - 1)
        answer = (
            torch.arange(n)
            == tasks.Retrieval().answers(ids.where(ids < len(words) - 1, 0))[:, :, None]
        )
    elif task == RIVALS:
        own = EVERY_TASK[task](None, 1)
        content = (ids >= 1 + own.values + own.keys) & (ids < len(words) - 1)
        answer = torch.arange(n) == own.answers(ids.where(ids < len(words) - 1, 0))[:, :, None]
    elif task == "recall":
        content = (ids >= 1) & (ids <= tasks.Recall().values)
        answer = torch.arange(n) == tasks.Recall().answers(ids)[:, :, None]
    elif task == "counting":
        content = (ids == number["x"]) | (ids == number["y"])
        answer = (ids == number["y"])[:, None, :].expand(-1, n, -1)
    else:
        content = (ids == number["0"]) | (ids == number["1"])
        order = content.cumsum(1)
        place = 1 if task == "first" else content.sum(1, keepdim=True)
        answer = (content & (order == place))[:, None, :].expand(-1, n, -1)
    return asked & answer, asked & content[:, None, :] & ~answer
