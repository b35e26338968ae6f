from helpers.claims import CORRECTED, FAILS, HOLDS

EXPECTED = {
    "causal_attention_is_no_bottleneck": (
        {CORRECTED},
        "closed form; reached in one hop, and after 16 layers one token is heard",
    ),
    "two_kinds_of_squashing": ({HOLDS}, "closed form"),
    "bound_with_attention_fixed": ({HOLDS}, "a theorem"),
    "bound_of_the_true_jacobian": ({FAILS}, "random decoders of fixed seeds, exceeded tenfold"),
    "printed_sum_is_the_product": ({FAILS}, "exact arithmetic"),
    "early_tokens_have_more_influence": ({CORRECTED}, "closed form, and the committed table of exact norms"),
    "largest_eigenvalue_is_one": ({HOLDS}, "a lemma"),
    "products_stay_stochastic": ({HOLDS}, "a lemma"),
    "bound_tends_to_the_first_token": ({HOLDS}, "a proposition whose conclusion is right"),
    "product_is_diagonalizable": ({FAILS}, "a counterexample in exact arithmetic"),
    "causal_mask_ends_at_the_first_token": ({HOLDS}, "a theorem"),
    "window_has_the_same_limit": ({HOLDS}, "a theorem"),
    "prefix_takes_all": ({HOLDS}, "a theorem"),
    "critical_distance_of_decay": ({HOLDS}, "a theorem; matrix products against the formula"),
    "slow_rotation_decays": ({HOLDS}, "a theorem, inside its assumption"),
    "residual_gives_a_u": ({HOLDS}, "closed form"),
    "first_token_is_a_sink": ({HOLDS}, "the embedded model, far from the bound"),
    "repeated_tokens_have_no_sink": ({HOLDS}, "the embedded model; equal tokens are alike to relative positions"),
    "sinks_slow_mixing": ({HOLDS}, "the embedded model"),
    "hiding_the_sink_breaks_the_model": ({CORRECTED}, "the embedded model; hidden early it does not"),
}
