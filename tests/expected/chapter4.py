from course.maths import counting


def tasks(*errors: float, read: int = 4) -> dict:
    return {"read": read, "error": dict(zip(counting.TASKS, errors, strict=True))}


def strategies(*errors: float, read: int = 3) -> dict:
    return {"read": read, "error": dict(zip(counting.STRATEGIES, errors, strict=True))}


def gaps(*intervals: tuple[float, float]) -> dict:
    return {k: (sum(each) / 2, *each, 15) for k, each in enumerate(intervals)}


def held(*ends: tuple[float, float, float]) -> dict:
    """By encoding, the ends of the intervals at three quarters of a length, and the low one at its last letter."""
    return {
        k: dict(zip(("low", "high", "last_low"), each, strict=True)) for k, each in enumerate(ends)
    }


def fates(*rows: tuple[float, float]) -> dict:
    """By encoding, what is right: of a line that is told what the decoder was, and of the decoder's head."""
    return {k: dict(zip(("findable", "used"), row, strict=True)) for k, row in enumerate(rows)}
