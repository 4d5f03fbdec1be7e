"""The wording that all mistakes share."""

import difflib


def nearest(word: str, choices: list[str]) -> str:
    """The end of a message about an unknown word: the choice that was meant, or all of them."""
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(choices)}"


def one_line(said: object) -> str:
    """A message or an error as one line that is not empty."""
    return " ".join(str(said).split()) or type(said).__name__
