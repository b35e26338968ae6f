from helpers.claims import CORRECTED, FAILS, HOLDS, OPEN

LARGE = "models of three billion parameters are not trained here"
EXPECTED = {
    "subtraction_cancels_noise": (
        {CORRECTED},
        "the toy: with independent noise the share falls, with correlated noise it grows",
    ),
    "half_of_lambda_is_the_threshold": (
        {HOLDS, CORRECTED},
        "a closed form for equal sizes; simulated rows differ in size",
    ),
    "signed_sums_hide_noise": ({HOLDS}, "a row sums to 1 - lambda"),
    "gradients_stay_aligned": ({FAILS}, "the norm divides by an output that falls with the length"),
    "two_plain_heads": ({HOLDS}, "an identity"),
    "more_needles": ({OPEN}, LARGE),
    "more_answer_less_noise": ({OPEN}, LARGE),
    "fewer_outliers": ({OPEN}, LARGE),
    "start_of_lambda_hardly_matters": ({OPEN}, LARGE),
    "head_norm_matters": ({OPEN}, LARGE),
    "fewer_parameters": ({OPEN}, LARGE),
    "fewer_tokens": ({OPEN}, LARGE),
    "negative_attention_reaches_further": ({CORRECTED}, "true of one head; two plain heads do the same"),
    "learning_rather_than_noise": ({OPEN}, LARGE),
    "off_by_one_can_say_nothing": ({CORRECTED}, "closed form: the logits must fall with the length"),
    "scalable_softmax_keeps_the_peak": ({CORRECTED}, "closed form: s times the gap must be above 1"),
    "race_differential_attends_to_the_answer": ({FAILS}, "the committed race: in the best head it has less"),
    "race_differential_retrieves": ({OPEN}, "the committed race: five seeds cannot tell it from RoPE"),
    "race_differential_has_smaller_outliers": ({OPEN}, "the committed race: five seeds cannot tell it from RoPE"),
    "race_share_is_not_the_point": ({OPEN}, "a correlation over entries that are not independent tells no cause"),
    "race_positions_are_not_enough": ({CORRECTED}, "the committed race: at the last copy, not at retrieval"),
    "race_windows_help": ({CORRECTED}, "the committed race: at the last copy alone"),
    "race_tokens_help": ({OPEN}, "the committed race: five seeds cannot tell separators from RoPE"),
    "race_sparsity_help": ({OPEN}, "the committed race: five seeds cannot tell entmax from RoPE"),
    "race_positions_decide": ({CORRECTED}, "the committed race: no test was made for the spread"),
}
