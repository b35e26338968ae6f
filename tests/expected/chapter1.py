from helpers.claims import CORRECTED, FAILS, HOLDS, OPEN

EXPECTED = {
    "width_bound": ({HOLDS}, "exact integers"),
    "width_explains_failures": ({FAILS}, "exact integers and the reported table"),
    "accuracy_falls_with_depth": ({OPEN}, "the committed table"),
    "figure_3_gcn": ({OPEN}, "the committed table"),
    "figure_3_gin": ({OPEN}, "the committed table"),
    "figure_3_gat": ({OPEN}, "the committed table"),
    "figure_3_ggnn": ({OPEN}, "the committed table"),
    "chains_are_fitted": (
        {HOLDS},
        "a thousand steps fit chains of three lengths from this seed; the tree is in the committed table",
    ),
    "fully_adjacent_layer_helps": ({OPEN}, "the committed table"),
    "attention_picks_the_leaf": ({CORRECTED}, "the committed table has runs that were not fitted"),
    "walks_bound_the_jacobian": ({HOLDS}, "a theorem"),
    "tree_closed_form": ({CORRECTED}, "closed form"),
    "resistance_bounds_the_jacobian": ({HOLDS}, "an inequality"),
    "resistance_beats_hops": ({CORRECTED}, "fixed graphs, weights drawn from five seeds"),
    "width_helps": ({HOLDS, CORRECTED}, "weights drawn from five seeds"),
    "copied_code_computes_curvature": ({FAILS}, "exact fractions"),
    "gap_brackets_the_cut": ({HOLDS}, "Cheeger's inequality, a theorem"),
    "sdrf_opens": ({CORRECTED}, "one draw of the weights"),
    "fosr_opens": ({HOLDS}, "one draw of the weights"),
    "gtr_opens": ({HOLDS}, "one draw of the weights"),
    "rewiring_lowers_commute_time": ({CORRECTED}, "closed form"),
}
