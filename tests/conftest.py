"""Shapes are checked on every call while testing, and hypothesis draws the same examples everywhere."""

import importlib.util

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
torch.set_num_threads(2)
