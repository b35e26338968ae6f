import pandas as pd


def gains(independent: float, correlated: float):
    """What the subtraction multiplies the answer's share by, with each kind of noise."""
    return {
        "measures.parts": lambda signal, correlation, n, lam: (correlation, lam),
        "measures.share": lambda found: 1 if found[1] == 0 else correlated if found[0] >= 0.9 else independent,
    }


def ratios(*values: float):
    """Gradients over a Transformer's, in six settings."""
    table = pd.DataFrame({"start": ["default", "Xavier"] * 3, "tokens alike": [0, 0.5] * 3, "norm and scale": values})
    return {"measures.gradient_setups": lambda: table}


def sums(signed: float, sized: float):
    """The noise of independent maps, where that of a plain one is 0.5."""
    table = pd.DataFrame({"noise, with signs": [0.5, signed], "noise, by size": [0.5, sized]})
    return {"measures.counted": lambda: table}
