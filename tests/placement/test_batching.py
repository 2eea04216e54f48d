"""When a batch of pending pods is complete (PLC-4 to PLC-6)."""

from dovetail.placement.batching import BatchWindow


def a_window() -> BatchWindow:
    return BatchWindow(idle=1.0, longest=10.0)


def test_a_window_without_a_pod_never_closes() -> None:
    """A window without a pod never closes (PLC-5)."""
    window = a_window()
    window.add(frozenset(), 5.0)
    assert window.closes() is None


def test_one_pod_is_planned_after_the_idle_time() -> None:
    """One pod is planned after the idle time (PLC-6, PLT-1)."""
    window = a_window()
    window.add({"a"}, 5.0)
    assert window.closes() == 6.0


def test_a_pod_that_is_in_the_window_does_not_prolong_it() -> None:
    """A pod that is in the window does not prolong it (PLC-4, PLT-2)."""
    window = a_window()
    window.add({"a"}, 5.0)
    window.add({"a"}, 5.9)
    assert window.closes() == 6.0


def test_another_pod_prolongs_it_by_the_idle_time() -> None:
    """Another pod prolongs it by the idle time (PLC-6, PLT-3)."""
    window = a_window()
    window.add({"a"}, 5.0)
    window.add({"a", "b"}, 5.9)
    assert (window.closes(), window.seen) == (6.9, {"a", "b"})


def test_a_stream_of_new_pods_ends_at_the_longest_time() -> None:
    """A stream of new pods ends at the longest time (PLC-6)."""
    window = a_window()
    for number in range(60):
        window.add({str(number)}, 5.0 + number / 2)
    assert window.closes() == 15.0
