"""The wording that all mistakes share."""

import difflib

LONGEST_SHOWN = 80
"""So much of a value is shown in a message."""

LONGEST_LINE = 1000
"""So much of a message is told: its beginning and its end."""


def nearest(word: object, choices: list[str]) -> str:
    """The end of a message about an unknown word: the choice that was meant, or all of them."""
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(choices)}"


def one_line(said: object) -> str:
    """A message or an error as one line that is not empty, which a terminal shows as it is: characters that
    would move its cursor or change its colours are spelled out.
    """
    line = printable(" ".join(str(said).split())) or type(said).__name__
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} ... {line[-LONGEST_LINE // 2 :]}"
    return line


def printable(text: object) -> str:
    """A text in which every character that cannot be seen is spelled out."""
    told = str(text)
    if told.isprintable():
        return told
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in told)


def shown(value: object) -> str:
    """What somebody gave, in a few words."""
    try:
        line = one_line(repr(value))
    except ValueError:  # Python writes no number of more than 4300 digits
        line = f"a number of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__
    return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 10]} ... {line[-5:]}"
