"""C-RASP: write programs, run them, ask questions about them and about regular languages, learn and
compile them.
"""

COMMANDS = {
    "run": "say whether a program accepts a word, also one such as (ab)^(10^12)",
    "trace": "show what a program counts and decides at every position of a word",
    "check": "read a program, and tell its depth, size, period, locality and fragment",
    "equivalent": "say whether two programs accept the same words, or on which word they differ",
    "decide": "say whether a regular language is in C-RASP, with a program or a family of words",
    "learn": "learn a program from another one, from a regular expression, or from examples",
    "compile": "write a program as a limit transformer, for inspect, bound and simulate",
    "bound": "say how long words must be to tell two programs apart",
}
