"""Short strings that imitate long ones."""

from lengthwise.simulation.pair import Pair
from lengthwise.simulation.result import Method, Simulation
from lengthwise.simulation.simulate import simulate

__all__ = ["Method", "Pair", "Simulation", "simulate"]
