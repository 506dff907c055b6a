"""Why tests that pass on PMDK do not pass here: patterns of their names, and the reason, as the page shows it."""

import re

POOL_SETS = "of pool sets: this library has those of one part alone"
LAYOUT = "compares numbers that follow from how PMDK lays out its heap"
INSIDE = "reads PMDK's `struct PMEMobjpool` in memory"
SPACE = "a thread keeps space at hand that others do not get"

REASONS = [
    ("obj_ctl_alloc_class_config/.*", LAYOUT + ": units of a class are rounded up to chunks"),
    ("obj_ctl_alloc_class/TEST0", "asks a class for more than its units: `units_per_block` has no effect here"),
    ("obj_ctl_arenas/TEST1", "asks for the bytes of an arena, which are 0 here"),
    ("obj_ctl_arenas/TEST7", "counts the thread-specific keys that the library takes: one here"),
    ("obj_ctl_debug/TEST0|obj_direct/.*|obj_oid_thread/.*", INSIDE),
    ("obj_ctl_stats/.*", "relies on figures that stand still while `stats.enabled` is off; here they are counted when asked"),
    ("obj_debug/TEST5|obj_tx_invalid/.*", "wants senseless calls to end the process, as in PMDK; here they are EINVAL"),
    ("obj_defrag/.*", LAYOUT + ": which objects can move"),
    ("obj_fragmentation/.*", "allows 10 % for headers and size classes; 1 and 4 KiB take more here"),
    ("obj_heap_state/TEST0", LAYOUT + ": offsets of objects"),
    ("obj_pmalloc_oom_mt/.*|enumerable_thread_specific_size_.*", SPACE),
    ("obj_pool/TEST32", "has a bad block's recovery file beside the pool, which this library does not know"),
    ("obj_ulog_size/.*", "fills the pool and gives buffers for the log, which this library does not use: its log finds no room"),
    ("obj_root/.*|obj_zones/.*", "makes a sparse pool of 17 or 64 GiB; here a pool gets all of its space when it is made"),
    ("obj_pool_open_mt/.*", "is under valgrind's helgrind, which does not know the library's atomic operations"),
    # libpmemobj-cpp
    ("transaction_common_.*", "a snapshot has no room: PMDK refuses it, here the commit aborts, which `run` does not look at"),
    ("pool_6_none", "makes the library's memory run out by `pmemobj_set_funcs`, which has no effect here"),
    ("ctl_0_none", "of a pool that grows (`heap.size.extend`)"),
]


def reason_of(test):
    """The reason that is known for a test, or nothing: such a failure is ours to explain or mend."""
    if test.of_pool_sets:
        return POOL_SETS
    return next((reason for pattern, reason in REASONS if re.fullmatch(pattern, test.name)), "")
