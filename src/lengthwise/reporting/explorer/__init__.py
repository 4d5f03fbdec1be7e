"""What the explorer answers: plain data for a page, from the parameters that a person moves."""

from lengthwise.reporting.explorer.answers import attention_answer, bound_answer, simulation_answer
from lengthwise.reporting.explorer.controls import CONSTRUCTIONS, InputMistake, controls

__all__ = [
    "CONSTRUCTIONS",
    "InputMistake",
    "attention_answer",
    "bound_answer",
    "controls",
    "simulation_answer",
]
