from collections import Counter
from random import Random

from medamad.demo.people import Weighted, skewed


def test_values_are_drawn_by_their_weights() -> None:
    random = Random(1)  # noqa: S311 - no secret
    drawn = Counter(Weighted({"a": 3.0, "b": 1.0, "never": 0.0}).draw(random) for _ in range(4000))
    assert set(drawn) == {"a", "b"}
    assert 2.7 < drawn["a"] / drawn["b"] < 3.3


def test_skewed_values_are_drawn_less_and_less() -> None:
    random = Random(1)  # noqa: S311 - no secret
    drawn = Counter(skewed(("first", "second", "third")).draw(random) for _ in range(4000))
    assert drawn["first"] > drawn["second"] > drawn["third"]
