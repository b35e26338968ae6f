from course.chapter3 import measures


def nearest(*shares: float) -> dict:
    return {"nearest": dict(zip(measures.ERRORS, shares, strict=True))}


def orders(first: list[bool], second: list[bool], able: bool = True) -> dict:
    return {
        "first": {"able": able, "right": {"last": first}},
        "second": {"right": {"last": second}},
    }
