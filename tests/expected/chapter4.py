from course.maths import counting


def tasks(*errors: float, read: int = 4) -> dict:
    return {"read": read, "error": dict(zip(counting.TASKS, errors, strict=True))}


def strategies(*errors: float, read: int = 3) -> dict:
    return {"read": read, "error": dict(zip(counting.STRATEGIES, errors, strict=True))}


def gaps(*intervals: tuple[float, float]) -> dict:
    return {k: (sum(each) / 2, *each, 15) for k, each in enumerate(intervals)}


def by_length(*shares: tuple[float, float]) -> dict:
    return {k: dict(zip((16, 64), each, strict=True)) for k, each in enumerate(shares)}


def fates(*rows: tuple[float, float]) -> dict:
    """By encoding, what is right: of a line that is told what the decoder was, and of the decoder's head."""
    return {k: dict(zip(("findable", "used"), row, strict=True)) for k, row in enumerate(rows)}
