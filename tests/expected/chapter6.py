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
}
