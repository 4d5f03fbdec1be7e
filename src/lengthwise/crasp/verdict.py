"""The answer to a question about languages or programs."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """Yes, no, or unknown, with what stands behind it.

    - ``answer``: True, False, or None where it is not known;
    - ``witness``: of the answer that needs one: a word, a program, a family of words; None otherwise;
    - ``method``: how it was found, in a few words;
    - ``details``: numbers that go with it, such as the bounds that were tried.
    """

    answer: bool | None
    witness: Any = None
    method: str = ""
    details: dict[str, Any] = field(default_factory=dict)
