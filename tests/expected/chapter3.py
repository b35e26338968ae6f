from helpers.claims import CORRECTED, FAILS, HOLDS, UNABLE

EXPECTED = {
    "last_weight_falls": ({HOLDS}, "a lemma"),
    "last_weight_vanishes": ({HOLDS}, "a lemma"),
    "early_noise_is_forgotten": ({CORRECTED}, "the limit has a closed form; the peak before it is far from the noise"),
    "decaying_positions_collapse": ({HOLDS}, "a theorem, on one head"),
    "proof_is_rough": ({HOLDS}, "the last entries differ by 3 (1 - exp(-1/10)) at every length"),
    "bounded_logits_suffice": ({FAILS}, "closed form"),
    "rope_decays": ({FAILS}, "closed form"),
    "alternating_sequences_stay_apart": ({HOLDS}, "closed form"),
    "all_encodings_collapse": ({CORRECTED}, "all fall; ALiBi levels off, by its closed form"),
    "encodings_collapse_alike": ({FAILS}, "a thousand times apart, where ten would do"),
    "sinusoidal_encodings_collapse": ({HOLDS}, "ratios of five seeds, far from the bounds"),
    "low_precision_is_worse": ({CORRECTED}, "a committed table"),
    "window_stops_collapse": ({CORRECTED}, "exactly 0 on equal tokens; level on varied ones"),
    "window_stops_over_squashing": ({CORRECTED}, "exactly 0 beyond the reach"),
    "adaptive_temperature_sharpens": ({CORRECTED}, "closed form"),
    "separators_do_not_follow": ({HOLDS}, "means of five seeds, far from the bounds"),
    "seq_vcr_sees_collapse": ({HOLDS}, "closed form for large batches"),
    "ones_collapse": ({CORRECTED}, "the embedded model, whose weights do not change"),
    "varied_digits_delay_collapse": ({CORRECTED}, "the embedded model: 50 ones at the end undo it"),
    "varied_digits_still_fall": ({CORRECTED}, "the embedded model, four seeds"),
    "commas_prevent_collapse": ({CORRECTED}, "the embedded model"),
    "merging_alleviates_collapse": ({FAILS}, "the embedded model: the unmerged letters stay farther apart"),
    "collapse_in_type_1": ({CORRECTED}, "the embedded model"),
    "first_digit_is_easier": ({UNABLE}, "the embedded model is wrong at five digits"),
    "hint_helps": ({UNABLE}, "the embedded model is wrong at five digits"),
    "alternation_helps": ({UNABLE}, "the embedded model is wrong at five digits"),
    "groups_help": ({UNABLE}, "the embedded model is wrong at five digits"),
    "prompt_order_matters": ({UNABLE}, "the embedded model is wrong at five digits"),
}


def _states(*distances: float):
    return lambda lengths, **_: list(distances)


EVIDENCE = {
    "ones_collapse": {
        HOLDS: {"_distance": _states(9, 8, 7, 3, 2, 1)},
        CORRECTED: {"_distance": _states(9, 12, 7, 3, 2, 1)},
        FAILS: {"_distance": _states(9, 8, 7, 6, 5, 4)},
    },
    "collapse_in_type_1": {
        HOLDS: {"_distance": _states(9, 8, 7, 1)},
        CORRECTED: {"_distance": _states(9, 3, 7, 1)},
        FAILS: {"_distance": _states(9, 8, 7, 6)},
    },
}
