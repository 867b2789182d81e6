"""What befalls a replica: epochs that it learns, kills, restarts, lost machines, lost power, lost logs."""

from chain.appends import killed
from chain.state import KILLED, LOST, MEMBER, NO_LOG, RUNS, Replica


def add_steps(view, number):
    replica, budget = view.replicas[number], view.budget
    if replica.behind:
        view.add("replica %d applies step %d", (number, len(replica.log)),
                 replicas=view.with_replica(number, replica._replace(behind=0)))
    if replica.up == RUNS:
        for config in range(len(view.history)):
            if view.history[config].epoch > view.epochs[number]:
                _add_epoch(view, number, config)
        if budget.kills:
            view.add("KILL replica %d", (number,), True, budget=view.spent("kills"),
                     replicas=view.with_replica(number, killed(replica)))
    if replica.up == KILLED:
        _add_restart(view, number)
    if replica.up != LOST and budget.losses and replica.member != NO_LOG:
        lost = Replica(LOST, replica.config, (), 0, 0, 0, replica.incarnation, 0, NO_LOG, 0)
        view.add("the machine of replica %d is LOST", (number,), True, budget=view.spent("losses"),
                 replicas=view.with_replica(number, lost))
    if replica.up != LOST and budget.wipes and replica.member == MEMBER:
        member = NO_LOG if view.model.log_identity else MEMBER
        empty = Replica(RUNS, replica.config, (), 0, 0, 0, replica.incarnation + 1, 1, member, 0)
        view.add("replica %d loses its log and comes back under its name", (number,), True,
                 budget=view.spent("wipes"), replicas=view.with_replica(number, empty))
    if replica.up != LOST and budget.powers and replica.member == MEMBER and replica.log:
        _add_power_losses(view, number)


def _add_power_losses(view, number):
    """Its log was not synced: the end of it is gone, and another boot id says that it may be (R17)."""
    replica, spent = view.replicas[number], view.spent("powers")
    if view.model.boot_id:
        out = Replica(RUNS, replica.config, (), 0, 0, 0, replica.incarnation + 1, 0, NO_LOG, 0)
        view.add("the machine of replica %d loses POWER: its log is none that counts", (number,), True,
                 budget=spent, replicas=view.with_replica(number, out))
        return
    chain = view.chains[number]
    for end in range(len(replica.log)):
        shorter = replica._replace(up=RUNS, log=replica.log[:end], committed=0, arriving=0, gate=0,
                                   incarnation=replica.incarnation + 1, pre_image=1, sent=0, behind=0)
        if number in chain and chain[0] == number:
            shorter = shorter._replace(committed=_known_commits(view.model, shorter))
        view.add("the machine of replica %d loses POWER, and its log what came after %d entries",
                 (number, end), True, budget=spent, replicas=view.with_replica(number, shorter))


def _add_epoch(view, number, config):
    """A replica learns a newer configuration. One that has no log and is in no chain learns none."""
    model, replica = view.model, view.replicas[number]
    epoch, chain, _ = view.history[config]
    if number not in chain:
        if replica.member == MEMBER and model.discard_log and model.only_members:
            out = Replica(RUNS, config, (), 0, 0, 0, replica.incarnation, 0, NO_LOG, 0)
            view.add("replica %d learns epoch %d: it is out, and drops its log", (number, epoch),
                     replicas=view.with_replica(number, out))
        return
    if replica.member == NO_LOG:
        return
    committed, arriving, gate = 0, 0, 0
    if chain[0] == number:
        was_head = view.acts[number] and view.chains[number][0] == number
        committed = replica.committed if was_head else _known_commits(model, replica)
        arriving = 0 if model.ack_epoch else replica.arriving
        gate = replica.gate if was_head else 0
    knows = replica._replace(config=config, committed=committed, arriving=arriving, gate=gate,
                             member=MEMBER)
    view.add("replica %d learns epoch %d, chain %s", (number, epoch, chain),
             replicas=view.with_replica(number, knows))


def _known_commits(model, head):
    """What a new head, or one that restarted, knows to be committed (R10)."""
    end = len(head.log)
    if not model.reack:
        return end
    return max(0, end - 1) if model.bsp else 0


def _add_restart(view, number):
    replica, chain = view.replicas[number], view.chains[number]
    is_head = replica.member == MEMBER and number in chain and chain[0] == number
    committed = _known_commits(view.model, replica) if is_head else 0
    view.add("replica %d restarts from its log", (number,), replicas=view.with_replica(
        number, replica._replace(up=RUNS, committed=committed, arriving=0, gate=0,
                                 incarnation=replica.incarnation + 1)))
