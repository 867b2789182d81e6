"""The configurations of the asynchronous cut. README.md says which rule needs which."""

from cut.model import Cut
from explore.configuration import Configuration


def kept(windows, cuts, long=False, **parameters):
    return Configuration(Cut, dict(parameters, windows=windows, cuts=cuts), long=long)


def dropped(breaks, windows, cuts, needless="", long=False, **parameters):
    """Traces keep the names of lanes and shards."""
    return Configuration(Cut, dict(parameters, windows=windows, cuts=cuts, symmetry=not breaks), breaks,
                         needless, long)


KEPT = {
    "cut": kept(2, 1, lost_oks=1),
    "cut_fails": kept(2, 1, failures=1, long=True),
    "cut_fails_next": kept(1, 2, failures=1, long=True),
    "cut_server": kept(2, 1, kills=1, long=True),
    "cut_server_next": kept(1, 2, kills=1, long=True),
    "cut_worker_one": kept(1, 1, worker_kills=1),
    "cut_worker": kept(2, 1, worker_kills=1, long=True),
    "cut_worker_next": kept(1, 2, worker_kills=1, old_host=False, long=True),
    "cut_late": kept(1, 2, failures=1, late_orders=1, long=True),
    "cut_scheduler": kept(2, 1, failures=1, scheduler_kills=1, long=True),
    "cut_no_scheduler": kept(2, 1, dies=True, timer=True, long=True),
    "cut_timer": kept(2, 1, failures=1, timer=True, long=True),
    "cut_timer_next": kept(1, 2, timer=True, long=True),
}

DROPPED = {
    "x_no_given_up": dropped("L", 2, 1, failures=1, given_up=False),
    "x_no_given_up_next": dropped("L", 1, 2, failures=1, given_up=False, long=True),
    "x_no_hold": dropped("P5", 2, 1, hold=False),
    "x_no_flush": dropped("P7", 2, 1, flush=False),
    "x_no_abort_moved": dropped("P5", 2, 1, worker_kills=1, abort_moved=False),
    "x_no_abort_restart": dropped("L", 2, 1, kills=1, abort_restart=False),
    "x_same_number": dropped("P5", 1, 2, worker_kills=1, old_host=False, new_number=False),
    "x_same_number_large": dropped("P5", 2, 2, worker_kills=1, new_number=False, long=True),
    "x_no_ledger": dropped("P2", 1, 0, lost_oks=1, ledger=False),
    "x_given_up_failed_only": dropped("L", 2, 1, kills=1, over_durable=False, every_ended=False),
    "x_no_timer": dropped("L", 2, 1, dies=True),
    "x_timer_lets_go_only": dropped("P5", 2, 1, timer=True, timer_final=False),
    "x_done_volatile": dropped(
        "", 2, 1, "given_up_through covers complete cuts, too, so a shard need not keep the number itself",
        kills=1, over_durable=False),
    "x_failed_keeps_holding": dropped(
        "", 2, 1, "given_up_through lets the pushes go, as long as there is a scheduler",
        failures=1, failure_releases=False),
}

CONFIGURATIONS = {**KEPT, **DROPPED}
