"""The configurations of a replicated shard. README.md says which rule needs which."""

from chain.model import Chain
from explore.configuration import Configuration

# Without late pushes, old epochs that workers learn, and identities in an OK: fewer states.
SMALL = dict(late=False, skips=False, identity=False)


def kept(long=False, **parameters):
    return Configuration(Chain, parameters, long=long)


def dropped(breaks, needless="", long=False, **parameters):
    """Traces with windows keep the names of the lanes."""
    named = breaks and parameters.get("mode") == "async"
    return Configuration(Chain, dict(parameters, symmetry=not named), breaks, needless, long)


# Why a rule is not needed.
NEEDLESS_ACK = ("what an old epoch acknowledged is in every member of it, and a replica is full only if it has "
                "what its predecessor has")
NEEDLESS_FORWARD = ("in bsp the entry of a step is the same whoever makes it, so the own append and forwarding "
                    "may overlap")
NEEDLESS_REQUEST = "in bsp a request names its step; its epoch serves the redirect and the OK alone"
NEEDLESS_REQUEST_ASYNC = ("the ledger and the tail decide; the epoch of a request serves the redirect "
                          "alone")

KEPT = {
    "chain2": kept(replicas=2, kills=1, losses=1, wrong=1, long=True),
    "chain2_worker": kept(replicas=2, kills=0, losses=1, wrong=1, worker_kills=1, identity=False, long=True),
    "chain2_wiped": kept(replicas=2, kills=1, wrong=1, wipes=1, **SMALL, long=True),
    "chain2_power": kept(replicas=2, kills=1, powers=2, **SMALL),
    "async2_power": kept(mode="async", replicas=2, kills=1, wrong=1, powers=1, long=True),
    "chain2_applies": kept(replicas=2, kills=0, losses=1, wrong=1, worker_kills=1, apply_apart=True, **SMALL),
    "chain3": kept(replicas=3, kills=1, wrong=1, steps_to_train=1, late=False, skips=False, long=True),
    "chain3_two": kept(replicas=3, kills=1, losses=1, wrong=1, steps_to_train=1, **SMALL, long=True),
    "join_lost": kept(replicas=2, spares=1, joins=1, kills=0, losses=1, **SMALL),
    "join_wrong": kept(replicas=2, spares=1, joins=1, kills=0, wrong=1, **SMALL, long=True),
    "join_both": kept(replicas=2, spares=1, joins=1, kills=0, losses=1, wrong=1, steps_to_train=1,
                      **SMALL, long=True),
    "join_from_one": kept(replicas=1, spares=1, joins=1, kills=1, wrong=1, worker_kills=1, **SMALL, long=True),
    "rejoin": kept(replicas=2, joins=1, kills=1, wrong=1, **SMALL, long=True),
    "forgetful_scheduler": kept(replicas=2, kills=0, wrong=2, scheduler_crashes=1, **SMALL),
    "async2": kept(mode="async", replicas=2, kills=1, losses=1, wrong=1, long=True),
    "async3": kept(mode="async", replicas=3, kills=1, wrong=1, steps_to_train=1, long=True),
    "async_join_kill": kept(mode="async", replicas=2, spares=1, joins=1, kills=1, steps_to_train=1, long=True),
    "async_join_wrong": kept(mode="async", replicas=2, spares=1, joins=1, kills=0, losses=1, wrong=1,
                             steps_to_train=1, skips=False, long=True),
    "async_rejoin": kept(mode="async", replicas=2, joins=1, kills=0, wrong=2, steps_to_train=1, long=True),
    "async_worker": kept(mode="async", replicas=2, kills=1, wrong=1, worker_kills=1, long=True),
}

DROPPED = {
    "x_commit_at_append": dropped("P1", kills=0, losses=1, wait_tail=False, every_full=False),
    "x_no_reack": dropped("P1", replicas=3, steps_to_train=1, kills=1, losses=1, reack=False,
                          every_full=False, **SMALL),
    "x_ack_no_epoch": dropped("", NEEDLESS_ACK, mode="async", spares=1, joins=1, kills=0, wrong=1,
                              ack_epoch=False, steps_to_train=1, late=False, skips=False),
    "x_ack_no_epoch_large": dropped("", NEEDLESS_ACK, True, mode="async", spares=1, joins=1, kills=0, losses=1,
                                    wrong=1, ack_epoch=False, steps_to_train=1, late=False, skips=False),
    "x_forward_no_epoch": dropped("P2", mode="async", kills=0, wrong=1, forward_epoch=False,
                                  every_full=False),
    "x_no_reforward": dropped("L", replicas=3, steps_to_train=1, kills=0, losses=1, reforward=False,
                              every_full=False, **SMALL),
    "x_tell_first": dropped("P1", kills=0, wrong=2, scheduler_crashes=1, persist_first=False,
                            every_full=False, **SMALL),
    "x_promote_removed": dropped("P1", kills=1, wrong=1, only_members=False, every_full=False, **SMALL),
    "x_promote_learner": dropped("P1", replicas=1, spares=1, joins=1, kills=1, only_full=False,
                                 every_full=False, **SMALL),
    "x_full_early": dropped("P1", replicas=1, spares=1, joins=1, kills=1, full_in_epoch=False,
                            every_full=False, **SMALL),
    "x_copy_from_head": dropped("P1", mode="async", replicas=2, spares=1, joins=1, kills=0, losses=1,
                                copy_from_tail=False, every_full=False),
    "x_rejoin_keeps_log": dropped("P1", mode="async", joins=1, kills=0, wrong=1, discard_log=False,
                                  every_full=False),
    "x_wiped_is_member": dropped("P1", kills=1, wipes=1, log_identity=False, every_full=False, **SMALL),
    "x_power_is_member": dropped("P1", kills=0, powers=1, boot_id=False, every_full=False, **SMALL),
    "x_forward_first": dropped("P1", mode="async", kills=1, wrong=1, append_first=False,
                               every_full=False),
    "x_forward_first_bsp": dropped("", NEEDLESS_FORWARD, kills=2, losses=1, wrong=1, append_first=False,
                                   steps_to_train=1, **SMALL),
    "x_forward_first_bsp_large": dropped("", NEEDLESS_FORWARD, True, kills=2, losses=1, wrong=1,
                                         append_first=False, **SMALL),
    "x_backup_no_pre": dropped("L", kills=0, losses=1, worker_kills=1, backup_pre=False, **SMALL),
    "x_image_no_pre": dropped("L", replicas=1, spares=1, joins=1, kills=0, wrong=1, worker_kills=1,
                              image_pre=False, **SMALL),
    "x_pull_before_applied": dropped("P3", kills=0, losses=1, worker_kills=1, apply_apart=True,
                                     pull_applied=False, every_full=False, **SMALL),
    "x_no_resend": dropped("L", kills=1, resend=False, late=False),
    "x_gate_from_clock": dropped("P2", kills=0, losses=1, gate_from_log=False),
    "x_request_no_epoch": dropped("", NEEDLESS_REQUEST, kills=0, losses=1, wrong=1, request_epoch=False,
                                  steps_to_train=1),
    "x_request_no_epoch_large": dropped("", NEEDLESS_REQUEST, True, kills=0, losses=1, wrong=1,
                                        request_epoch=False),
    "x_request_no_epoch_async": dropped("", NEEDLESS_REQUEST_ASYNC, mode="async", kills=1, losses=1, wrong=1,
                                        request_epoch=False, steps_to_train=1),
    "x_request_no_epoch_async_large": dropped("", NEEDLESS_REQUEST_ASYNC, True, mode="async", kills=1, losses=1,
                                              wrong=1, request_epoch=False),
}

CONFIGURATIONS = {**KEPT, **DROPPED}
