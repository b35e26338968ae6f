from helpers.claims import CORRECTED, HOLDS, OPEN, UNABLE

EXPECTED = {
    "same_ratio_same_state": ({HOLDS}, "a theorem"),
    "a_first_token_counts": ({HOLDS}, "exact fractions, and closed forms in fp64"),
    "collapse_ends_counting": ({CORRECTED}, "exact fractions tell every n, rounded ones do not"),
    "first_token_reach": ({HOLDS}, "rounding once, by exact rules"),
    "wide_enough_counts": ({HOLDS}, "orthogonal codes"),
    "transition_at_the_vocabulary": ({CORRECTED}, "a step for long sequences; other logits go round it"),
    "merged_tokens_hide_items": ({CORRECTED}, "the embedded tokenizer merges letters, not digits"),
    "answers_are_round": ({HOLDS}, "the committed table"),
    "separators_help_with_314": ({OPEN}, "one answer a cell, few pairs that differ"),
    "separators_help_in_training": ({UNABLE}, "accuracies below those of one constant answer"),
    "base_has_no_rule": ({CORRECTED}, "no trend, at accuracies where none could show"),
    "order_of_difficulty": ({OPEN}, "a figure without numbers"),
    "order_of_strategies": ({OPEN}, "a figure without numbers"),
}
