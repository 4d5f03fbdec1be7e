"""The checker that tests switch on: beartype, with whole numbers allowed where floats are."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
