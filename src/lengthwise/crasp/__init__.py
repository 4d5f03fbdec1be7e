"""The language C-RASP: syntax, evaluation, compilation, decisions."""
