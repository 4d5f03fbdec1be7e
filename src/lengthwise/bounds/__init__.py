"""How long is long enough: theorems, certificates, exact divergence."""
