"""The configurations of moves, merges and splits. README.md says which rule needs which."""

from explore.configuration import Configuration
from move.model import Move


def kept(long=False, **parameters):
    return Configuration(Move, parameters, long=long)


def dropped(breaks, needless="", **parameters):
    return Configuration(Move, parameters, breaks, needless)


KEPT = {
    "move": kept(kills=1, worker_kills=1, long=True),
    "move_again": kept(kills=1, wrong=1, attempts=2, long=True),
    "move_target_lost": kept(kills=1, target_losses=1, long=True),
    "merge": kept(operation="merge", kills=1, long=True),
    "merge_worker": kept(operation="merge", kills=0, worker_kills=1, long=True),
    "split": kept(operation="split", kills=1, worker_kills=1, wrong=1, long=True),
    "move_killed": kept(kills=1),
    "split_killed": kept(operation="split", kills=1),
}

DROPPED = {
    "x_no_unseal": dropped("L", kills=0, target_losses=1, unseal=False),
    "x_no_seal": dropped("P8", kills=0, seal=False),
    "x_seal_volatile": dropped("P8", kills=1, seal_durable=False),
    "x_self_unseal": dropped("P8", kills=0, self_unseal=True),
    "x_stale_report": dropped("P1", kills=0, wrong=1, attempts=2, fresh_report=False),
    "x_copy_volatile": dropped("P1", kills=1, copy_durable=False),
    "x_serve_before": dropped("P8", kills=0, wrong=1, serve_after=False, request_epoch=False),
    "x_move_no_pre": dropped("L", kills=0, worker_kills=1, move_pre=False),
    "x_merge_any_step": dropped("P3", operation="merge", kills=0, named_step=False),
    "x_sealed_mute": dropped("L", operation="merge", kills=0, worker_kills=1, sealed_pulls=False),
    "x_drop_early": dropped("P1", kills=0, wrong=1, drop_late=False),
    "x_move_request_any": dropped("", "a sealed source cannot commit, and bsp requests name their step",
                                  kills=1, request_epoch=False),
}

CONFIGURATIONS = {**KEPT, **DROPPED}
