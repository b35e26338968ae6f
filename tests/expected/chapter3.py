from helpers.claims import CORRECTED, FAILS, HOLDS, UNABLE

EXPECTED = {
    "last_weight_falls": ({HOLDS}, "a lemma"),
    "early_noise_is_forgotten": ({CORRECTED}, "the limit has a closed form"),
    "decaying_positions_collapse": ({HOLDS}, "a theorem, on one head"),
    "bounded_logits_suffice": ({FAILS}, "closed form"),
    "rope_decays": ({FAILS}, "closed form"),
    "alternating_sequences_stay_apart": ({HOLDS}, "closed form"),
    "all_encodings_collapse": ({FAILS}, "ratios of ten seeds, far from the bounds"),
    "sinusoidal_encodings_collapse": ({CORRECTED}, "ratios of five seeds, far from the bounds"),
    "low_precision_collides_sooner": ({HOLDS}, "exact arithmetic"),
    "window_stops_collapse": ({HOLDS}, "ratios of ten seeds, far from the bounds"),
    "adaptive_temperature_sharpens": ({CORRECTED}, "closed form"),
    "seq_vcr_sees_collapse": ({HOLDS}, "closed form for large batches"),
    "ones_collapse": ({CORRECTED}, "the embedded model, whose weights do not change"),
    "commas_prevent_collapse": ({CORRECTED}, "the embedded model"),
    "first_digit_is_easier": ({UNABLE}, "the embedded model"),
    "hint_helps": ({FAILS}, "the embedded model"),
    "alternation_helps": ({FAILS}, "the embedded model"),
}
