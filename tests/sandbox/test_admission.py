"""Admission control."""

import os
import threading

from gem.sandbox.admission import Admission, admission


def test_only_as_many_programs_run_as_there_are_slots():
    slots, most, running, lock = Admission(cores=2, per_core=2), [0], [0], threading.Lock()

    def program():
        with slots.slot():
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            threading.Event().wait(0.01)
            with lock:
                running[0] -= 1

    threads = [threading.Thread(target=program) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 4
    assert slots.free == 4


def test_a_thread_that_runs_one_program_after_another_does_not_starve_those_that_wait():
    slots, waited = Admission(cores=1, per_core=1), threading.Event()

    def wait():
        with slots.slot():
            waited.set()

    thread = threading.Thread(target=wait)
    with slots.slot():
        thread.start()
        while not slots._waiting:
            pass
    with slots.slot():  # only after the other
        assert waited.is_set()
    thread.join()


def test_extra_slots_are_taken_without_waiting():
    slots = Admission(cores=1, per_core=3)
    with slots.slot():
        assert slots.extra(5) == 2
        assert slots.extra(1) == 0
        slots.release(2)
    assert slots.free == 3


def test_a_reservation_waits_for_a_whole_core_and_goes_before_new_programs():
    slots, events = Admission(cores=1, per_core=2), []
    held = slots.slot()
    held.__enter__()

    def reserve():
        with slots.reserved():
            events.append(("reserved", slots.free))

    def enter():
        with slots.slot():
            events.append(("slot", slots.free))

    first = threading.Thread(target=reserve)
    first.start()
    while not slots._waiting:
        pass
    assert slots.extra(1) == 0  # a slot is free, but the reservation needs it
    second = threading.Thread(target=enter)
    second.start()
    held.__exit__(None, None, None)
    first.join()
    second.join()
    assert events == [("reserved", 0), ("slot", 1)]


def test_a_forked_process_has_its_own_slots():
    with admission().slot():
        pid = os.fork()
        if pid == 0:
            os._exit(0 if admission().free == Admission(len(os.sched_getaffinity(0))).free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_callback_of_a_running_program_can_run_another_program():
    slots = Admission(cores=1, per_core=1)
    with slots.slot():
        with slots.slot(), slots.reserved():
            assert slots.free == 0
        assert slots.free == 0
    assert slots.free == 1
