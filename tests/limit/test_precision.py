"""Precisions refuse what is not one."""

import pytest

from lengthwise import Finite


@pytest.mark.parametrize("bits", [0, -1, float("inf"), float("nan"), True])
def test_bits_must_be_a_positive_number(bits):
    with pytest.raises(ValueError, match="bits must be"):
        Finite(bits)
