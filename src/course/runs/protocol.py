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
# Two questions, two columns. Is it right? `success`: learned, right in KEPT at the longest length
# (shown with its 95 % interval over seeds), and by attention that keeps to the answer (SHARP); the
# same for all entries. Is it better than what it is made of? `gain`: log odds of a right answer,
# mean of the lengths beyond the trained one, paired over seeds, against RoPE and against the
# decoder without the one ingredient; Holm's correction over the entries of a task. An ingredient
# *opens* a task if the entry succeeds and gains against the decoder without it (or that one has not
# learned). No room: an entry without any error could not be better than this reference by MARGIN.

# right at the trained length, on rows of its own: a run that gets there stops, one that does not
# has not learned
LEARNED = 0.98
# of a cell's seeds must have learned, or the cell is "not learned" and compared at no length; where
# some have not, the share that has is told beside it (0.8 at first: of three seeds all, which one
# that learns in nine of ten misses in 27 %)
CELL = 0.5
# steps between two looks at the criterion; finer in the runs at a fixed budget, which say what
# training costs
CHECKED, FINER = (100, 10)
MARGIN = math.log(
    1.25
)  # of the log odds: at one half it is 0.056 of the share, near 1 a fifth fewer errors
LEVEL = 0.05  # of a test, after Holm's correction over the remedies of a task
KEPT = 0.9  # right at the longest length
SHARP = 0.5  # of a row's attention on one token is called extreme
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
# Seeds, by rule and not by result, set before any run of an added entry was seen: BUDGET's 15 in
# the cells of the first table; for added entries 8 at retrieval (`entries.NAMED`), 5 at the last
# copy (NAMED), 3 in all other cells: at recall, for memories, sums and recurrent networks, at a
# fixed budget, trained to 128, and beyond 128 tokens. Raised later, with the first seeds known: 15
# in every cell of the hybrid with scalable softmax, which the conclusion names; at recall 8 of
# ALiBi and RoPE, where ALiBi's first three stood at the bound, and 15 of stick-breaking: 4 of 8 had
# learned.
#
# Design apart from budget, written down before any row of `race_plateau`: every run gets PLATEAU
# steps and is judged twice, at its first touch of the criterion (as in the table above, the same
# rows) and at the end. A sentence about a design is said of the end, or of both. "Plateau": the
# mean over the last third of the budget less that over the third before (PARTS looks in all) has a
# 90 % interval over seeds within STILL of zero; above it, "still rising"; else "not told". Beyond
# 128 tokens both states are asked wherever either is right in KEPT at 128, in the mean of the seeds
# run together. "Stays right": the mean is at least KEPT, and so is the low end of its 95 %
# interval; with the mean alone, "at the bound". Five seeds, eight where a sentence names the cell,
# 0, 1, ...; a cell with fewer is shown as such. `race_price`: steps to the criterion at the trained
# length itself, three seeds, PLATEAU steps at most. `race_twice`, before its first row: twice the
# width, four layers, retrieval, three seeds, state at the end. Of all pairs of entries whose mean
# right at 128 differs by .1 or more in the small size (`race_plateau` at the end; else `race`,
# where it stopped), the order stands if the larger size has the same sign; "not told" within .05 of
# zero there. What time did not allow is "not run", which opens nothing.
PLATEAU, PARTS, STILL = 3000, 6, 0.05

# Three learning rates, written down before any row of `race_plateau` or `race_price` at another
# rate than .005.
#
# .005 was chosen for RoPE with softmax, and every table above has this rate only. So the entries
# that a sentence names run again at RATES, with the same decoders, batches, criterion and looks,
# PLATEAU steps each, and the *same* runs are judged at the first touch and at the end. Seeds 0 to
# 4; 0 to 7 where a sentence rests on the cell; a cell with fewer says so. Rows at .005 that were
# there stay: they are the same runs.
#
# * Best rate of an entry at a task: chosen on the trained length only. The rate at which the
#   largest fraction of its runs learned; between equals the one with the fewest steps to the first
#   touch on average (a run that has not learned counts all of its steps); of equals, which the last
#   copy has, the race's own rate. Scores at longer lengths have no part in the choice. An entry
#   with fewer than two rates run at a task (three seeds or more each) has no best rate there: what
#   is said of it is said "at a rate of .005".
# * "Learns" and "price" (steps to the criterion) are said at the best rate. "Does not learn" is
#   said only where all of RATES were run and at none of them half of the runs learned; else "not
#   learned at" with the rates.
# * "First touch" and "end" of a cell are means over one population, the runs that learned, with the
#   fraction that learned beside them; `stays` is asked of the same runs at the end.
# * "Goes far" (right in KEPT at 128) is said if it is true at the best rate at both stops. If the
#   stops differ, the sentence names the stop; if another rate gives the contrary, the sentence
#   names the rate.
# * The order of two entries at 128 "stands at every rate" if the difference of means at the end has
#   one sign, and at least STILL in size, at each rate that both ran; it "hangs on the rate" if the
#   sign turns; else "inconclusive".
# * Price with length: `race_price` at .005 and .002, three seeds, at the trained lengths of its
#   table. An entry that learns at one of the two rates has learned. A ratio of two entries' prices
#   is of their best rates.
# * Cells that time did not allow are "not run", and no sentence is about them. Order of running:
#   retrieval, recall and counting of the entries whose sentences could fall (the hybrid,
#   stick-breaking, NoPE, RoPE, the differential pairs), then the price, then the rest.
RATES = (0.001, 0.002, 0.005)
# Rivals, written down before any row of `race_rivals`: retrieval with as many keys as pairs, 128 in
# all, rates .005 and .002, three seeds, PLATEAU steps, the rules above. "A memory of fixed size
# fails with more rivals" is said if such an entry learned, stays right (KEPT) at 128 pairs of
# `retrieval` and falls at 128 pairs of `rivals`, while an entry with full attention stays right at
# both; FAR lengths have no rows, as there are 128 keys.
#
# The third rate, written down before any row at .001 and before any row of `race_window`. One core
# for about an hour, so three seeds (0 to 2) of PLATEAU steps, in this order, and what is not
# reached is "not run": retrieval of the hybrid, NoPE, RoPE and stick-breaking; recall of
# stick-breaking and the hybrid (the hybrid at .002, too); counting of squared ReLU and NoPE (at
# .002, too); the pairs of `race_pairs`. The rules are those of RATES: a sentence that turns at .001
# names its rate, and "at every rate" is said of three rates only where all three were run. Windows:
# the hybrid with a window of WINDOWS tokens below, and with none; retrieval, .005 and .002, seeds 0
# to 2, 1,000 steps, looked at every FINER steps. Price: steps to the first touch, mean of the runs,
# with all steps for a run that has not learned. "A larger window is learned later" (what 2606.15378
# found in large hybrids) is said if the price rises from the smallest to the largest window by a
# quarter or more at both rates; "sooner" if it falls by as much at both; else "no order". "A larger
# window costs length" is said if right at 128 pairs after all steps is lower with the largest
# window than with the smallest by STILL or more at both rates; "gains length" if higher; else
# "hangs on the rate" or "inconclusive". Forgetting attention is an added entry: seeds 0 to 2 at
# all five tasks of `race`, and of `race_plateau` at retrieval, .005 and .002. What was still
# missing, written down before its rows, seeds 0 to 2: stick-breaking at retrieval at .002 and .001;
# counting of NoPE at .001 and .002 and of squared ReLU at .001; forgetting attention at recall,
# .005 and .002; last copy and first copy of RoPE, NoPE, the hybrid and stick-breaking at .002.
# First copy has no run at another rate in `race_plateau`: by the rules above its cells have no best
# rate until a second one was run.
#
# A second list, written down before its rows, seeds 0 to 2, rules as above: first copy of the same
# four entries at .005, too, and last copy of RoPE and NoPE, so that these cells have two rates;
# forgetting attention at retrieval, recall and counting at all of RATES, then last copy at .005 and
# .002; the hybrid and NoPE with scalable softmax at retrieval at .002 and .001, for what is said of
# 2,048. What is not reached is "not run". All of this list was run in the end, and of the list
# before it all but stick-breaking at counting.
#
# Beyond both lists, and so without a rule for their verdicts: recall of NoPE and RoPE at .002. With
# them NoPE, of which theory predicts something, has two rates at all five tasks.
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
