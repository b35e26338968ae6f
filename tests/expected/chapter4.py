from course.maths import counting


def tasks(*errors: float, read: int = 4) -> dict:
    return {"read": read, "error": dict(zip(counting.TASKS, errors, strict=True))}


def strategies(*errors: float, read: int = 3) -> dict:
    return {"read": read, "error": dict(zip(counting.STRATEGIES, errors, strict=True))}


def gaps(*intervals: tuple[float, float]) -> dict:
    return {k: (sum(each) / 2, *each, 15) for k, each in enumerate(intervals)}


def by_length(*shares: tuple[float, float]) -> dict:
    return {k: dict(zip((16, 64), each, strict=True)) for k, each in enumerate(shares)}


def states(*rows: tuple[float, float, float]) -> dict:
    """By encoding, what is right: of the decoder, and of a read-out after and before training."""
    names = ("decoder", "read-out", "untrained")
    return {k: {name: [share] * 2 for name, share in zip(names, row, strict=True)} for k, row in enumerate(rows)}
