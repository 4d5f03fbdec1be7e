"""Threads for shares of the models: who is used when, and that nothing of it stays behind."""

import threading

import pytest
import torch

from lengthwise.training.workers import SMALL, Workers


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_every_thread_works_by_itself():
    meeting = threading.Barrier(2, timeout=20)

    def work(item):
        meeting.wait()  # both at the same time, or never
        return item * 10, torch.get_num_threads(), threading.get_ident()

    with Workers(5) as workers:
        assert workers.size == 2
        assert torch.get_num_threads() == 1
        results = workers.map(work, [1, 2, 3, 4])
        assert [value for value, _, _ in results] == [10, 20, 30, 40]
        assert {threads for _, threads, _ in results} == {1}
        assert len({name for _, _, name in results}) == 2
        assert workers.map(lambda item: threading.get_ident(), [0]) == [threading.get_ident()]
    assert torch.get_num_threads() == 2
    with workers:  # and again
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_fewer_models_than_threads():
    for numbers, threads in ((SMALL, 2), (SMALL - 1, 1)):
        with Workers(1, numbers) as workers:
            assert (workers.size, torch.get_num_threads()) == (threads, 1)
            assert workers.map(lambda item: item + 1, [1, 2]) == [2, 3]
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_what_goes_wrong_in_a_thread_is_told():
    def work(item):
        if item == 3:
            raise ValueError("no three")
        return item

    with pytest.raises(ValueError, match="no three"), Workers(5) as workers:
        workers.map(work, range(6))
    assert torch.get_num_threads() == 2
