from helpers.claims import CORRECTED, FAILS, HOLDS, OPEN, UNABLE

EXPECTED = {
    "same_ratio_same_state": ({HOLDS}, "a theorem"),
    "a_first_token_counts": ({HOLDS}, "exact fractions, and closed forms in fp64"),
    "collapse_ends_counting": ({CORRECTED}, "exact fractions tell every n, rounded ones do not"),
    "first_token_reach": ({HOLDS}, "rounding once, by exact rules"),
    "wide_enough_counts": ({CORRECTED}, "orthogonal codes, if the length is given: an average has lost it"),
    "transition_at_the_vocabulary": ({CORRECTED}, "a step for long sequences; other logits go round it"),
    "merged_tokens_hide_items": ({CORRECTED}, "the embedded tokenizer merges letters, not digits"),
    "answers_are_round": ({HOLDS}, "the committed table"),
    "separators_help_with_314": ({OPEN}, "one answer a cell, few pairs that differ"),
    "separators_help_in_training": ({UNABLE}, "accuracies below those of one constant answer"),
    "base_has_no_rule": ({CORRECTED}, "no trend, at accuracies where none could show"),
    "order_of_difficulty": ({OPEN}, "a figure without numbers"),
    "order_of_strategies": ({OPEN}, "a figure without numbers"),
    "counting_error_grows": (
        {HOLDS, CORRECTED},
        "the committed tables: small decoders; the embedded model cannot count",
    ),
    "guesses_are_round": ({UNABLE}, "the committed answers of the embedded model, which cannot count ten items"),
    "commas_do_not_help_from_scratch": ({HOLDS}, "the committed table, three seeds"),
    "base_in_trained_decoders": ({FAILS}, "the committed table: a trend beyond the lengths of training"),
    "chunks_in_trained_decoders": ({OPEN}, "the committed table: means differ, the ranges of three seeds overlap"),
    "last_token_is_lost_first": ({FAILS}, "the committed table: the first digit is lost as well, and earlier"),
    "copying_fails_at_collapse": ({FAILS}, "the committed table: half of the distance is left"),
    "window_keeps_the_last": ({HOLDS}, "the committed table, and the reach of a window"),
}
