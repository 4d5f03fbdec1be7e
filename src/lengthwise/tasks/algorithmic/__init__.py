"""The algorithmic suite of Huang et al. (ICLR 2025): eight tasks whose answer is a word.

Inputs of a task have lengths that are uniform in a range; how the inputs of a length are drawn, and what is
answered, stands with each task, and so does how we read the source where it leaves something open.
"""

from lengthwise.tasks._streams import StreamTask
from lengthwise.tasks.algorithmic.addition import AdditionTask
from lengthwise.tasks.algorithmic.binary import BinaryMajorityTask, InterleavedMajorityTask, ParityTask
from lengthwise.tasks.algorithmic.copying import CopyRepeatTask, CopyUniqueTask, SortTask
from lengthwise.tasks.algorithmic.majority import MajorityTask

__all__ = [
    "ALGORITHMIC",
    "AdditionTask",
    "BinaryMajorityTask",
    "CopyRepeatTask",
    "CopyUniqueTask",
    "InterleavedMajorityTask",
    "MajorityTask",
    "ParityTask",
    "SortTask",
]

ALGORITHMIC: dict[str, type[StreamTask]] = {
    kind.name: kind
    for kind in (
        BinaryMajorityTask,
        MajorityTask,
        InterleavedMajorityTask,
        CopyUniqueTask,
        CopyRepeatTask,
        SortTask,
        ParityTask,
        AdditionTask,
    )
}
"""The tasks by the names that users type."""
