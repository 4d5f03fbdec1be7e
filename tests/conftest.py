"""Shapes are checked on every call while testing, and hypothesis draws the same examples everywhere."""

import importlib.util
import os

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

if importlib.util.find_spec("beartype"):
    install_import_hook("lengthwise", "shapes.check")

settings.register_profile(
    "lengthwise",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lengthwise")
# Two processes of one thread each, or one of two, fill two cores.
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)


@pytest.fixture(scope="module")
def one_thread():
    """For tests of small tensors: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
