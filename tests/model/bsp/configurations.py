"""The configurations of synchronous training. README.md says which rule needs which."""

from bsp.model import Bsp
from explore.configuration import Configuration


def killed(servers=0, workers=0, both=None):
    """How many servers and workers are killed at most, and how many of both together."""
    return dict(server_kills=servers, worker_kills=workers,
                kills=servers + workers if both is None else both)


EITHER = killed(1, 1, both=1)
MOVE = dict(move=True)
SEALED_MOVE = dict(move=True, seal=True, copy_after_acks=False)


def kept(kills, long=False, **parameters):
    return Configuration(Bsp, {**kills, **parameters}, long=long)


def dropped(breaks, kills, needless="", long=False, **parameters):
    return Configuration(Bsp, {**kills, **parameters}, breaks, needless, long)


KEPT = {
    "base_2l2w": kept(killed(2, 2, both=2), long=True),
    "base_3l2w": kept(killed(1, 1), lanes=3, long=True),
    "base_3l2w_wk2": kept(killed(0, 2), lanes=3, starts="min", long=True),
    "base_3steps": kept(killed(1, 1), steps_to_train=3, long=True),
    "base_1worker": kept(killed(1, 1), lanes=3, workers=1, long=True),
    "image": kept(killed(1, 1), images=1, long=True),
    "image_ss": kept(killed(2), images=1),
    "resend_inc": kept(killed(1, 1), resend="inc", long=True),
    "zworker": kept(killed(1), zombies=1),
    "torn_atomic": kept(killed(2), parts=2, torn="atomic"),
    "rollback": kept(EITHER, rollback=True),
    "move_seal": kept(EITHER, **SEALED_MOVE, long=True),
    "move_acks": kept(EITHER, **MOVE, long=True),
    "maxonly": kept(EITHER, lanes=3, largest_only=True, long=True),
    "move_fence_one": kept(killed(), lanes=1, one_worker=True, zombies=1, late=False, presum=False,
                           delay=False, **MOVE),
    "move_fence": kept(killed(), one_worker=True, zombies=1, late=False, presum=False, delay=False,
                       **MOVE, long=True),
}

# Why a rule is not needed.
LATE_REPLIES = "a sealed source commits nothing that the copy lacks, so its late replies are right"
SERVES_BESIDE = "a sealed source commits nothing, so the target may serve beside it"
OLD_PUSHES = "a push names its step, and the new owner drops what its copy has"

DROPPED = {
    "x_torn_mindedup": dropped("P3", killed(1, 1), parts=2, torn="mindedup"),
    "x_img_no_pre": dropped("L", killed(1, 1), images=1, image_pre=False),
    "x_replay_no_pre": dropped("L", killed(1, 1), replay_pre=False),
    "x_no_pre": dropped("L", killed(0, 1), pre_images=False),
    "x_no_cover": dropped("P2", killed(0, 1), nodes_drop=False),
    "x_maxonly_noreplace": dropped("L", killed(0, 1), lanes=3, largest_only=True,
                                   nodes_replace=False),
    "x_no_stepdedup": dropped("P3", killed(), old_steps_drop=False),
    "x_no_jump": dropped("L", killed(0, 1), jumps=False),
    "x_no_jump_min": dropped(
        "", killed(0, 1), "a lane that starts at the lowest clock + 1 pulls nothing older; but see x_no_jump_min_z",
        jumps=False, starts="min"),
    "x_no_jump_min_z": dropped("L", killed(), jumps=False, starts="min", zombies=1),
    "x_start_max": dropped("L", killed(0, 1), starts="max"),
    "x_no_keep": dropped("L", killed(1), keeps=False),
    "x_resend_epoch": dropped("L", killed(1), resend="epoch"),
    "x_no_wait_all": dropped("P3", killed(), waits_for_all=False),
    "x_ack_first": dropped("P1", killed(1), log_first=False),
    "x_trust_ssd": dropped("P3", killed(1), trusts_ssd=True),
    "x_torn_min": dropped("P3", killed(1), parts=2, torn="min"),
    "x_torn_max": dropped("P3", killed(1), parts=2, torn="max"),
    "x_memory": dropped("L", killed(1), memory=True),
    "x_memory_back": dropped("L", killed(1), memory=True, steps_back=True),
    "x_move_early_copy": dropped("P1", killed(), copy_after_acks=False, **MOVE),
    "x_move_seal_lost": dropped("P1", killed(1), seal_durable=False, **SEALED_MOVE),
    "x_move_no_discard": dropped("P1", killed(), discards=False, **MOVE),
    "x_move_seal_nodisc": dropped("", EITHER, LATE_REPLIES, discards=False, steps_to_train=1,
                                  **SEALED_MOVE),
    "x_move_seal_nodisc_large": dropped("", EITHER, LATE_REPLIES, True, discards=False, **SEALED_MOVE),
    "x_move_no_ackwait": dropped("", EITHER, SERVES_BESIDE, ack_before_serve=False, steps_to_train=1,
                                 **SEALED_MOVE),
    "x_move_no_ackwait_large": dropped("", EITHER, SERVES_BESIDE, True, ack_before_serve=False,
                                       **SEALED_MOVE),
    "x_move_no_srvepoch": dropped("", EITHER, OLD_PUSHES, server_epoch=False, steps_to_train=1, **MOVE),
    "x_move_no_srvepoch_large": dropped("", EITHER, OLD_PUSHES, True, server_epoch=False, **MOVE),
    "x_move_no_pre": dropped("L", killed(0, 1), move_pre=False, **MOVE),
    "x_move_no_fence": dropped("L", killed(), lanes=1, one_worker=True, zombies=1, fence=False,
                               late=False, presum=False, delay=False, **MOVE),
    "x_rollback_no_gen": dropped("L", killed(), rollback=True, generations_checked=False),
    "x_shared_log": dropped("", killed(1), "replay drops the steps that the log has twice",
                            shared_log=True, **MOVE),
    "x_shared_log_nodedup": dropped("P3", killed(1), shared_log=True, replay_dedup=False, **MOVE),
}

CONFIGURATIONS = {**KEPT, **DROPPED}
