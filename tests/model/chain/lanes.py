"""Steps of the lanes and their workers: pulls, pushes, epochs that they learn, and their deaths."""

from chain.state import BOTH, CHAIN, OWN, PERSISTED, TAKEN, Lane, newest, window
from explore.model import Violation


def add_steps(view, index):
    lane = view.lanes[index]
    if view.model.bsp:
        head = view.history[lane.config].chain[0]
        if view.accepts(head, lane.config):
            _add_pull(view, index, head)
            _add_push(view, index, head)
        _add_other_shard(view, index)
    elif lane.step <= view.model.steps_to_train:
        _add_window(view, index)
    _add_epochs(view, index)
    if view.budget.worker_kills:
        _add_worker_kills(view, index)
    if view.model.late:
        for head in view.heads:
            _add_late_pushes(view, index, head)


def _add_pull(view, index, head):
    """A head answers the pull of its log end, of the step behind it when that is committed (R10, R11)."""
    lane, replica = view.lanes[index], view.replicas[head]
    if (lane.answers & CHAIN or replica.behind == OWN or
            replica.behind == TAKEN and view.model.pull_applied):
        return
    end = len(replica.log)
    if replica.behind and lane.step == end and replica.committed >= end - 1:
        raise Violation("P3", "replica %d answers Pull(%d) by a clock of %d, from rows that have step %d by then",
                        head, end, end - 1, end)
    if (lane.step == end + 1 and replica.committed == end or
            lane.step == end and replica.pre_image):
        place = newest(view.history)
        if head != view.history[place].chain[0] and view.epochs[head] < view.history[place].epoch:
            view.model.note("a superseded head answered a pull that was used, with the right bits")
        view.add("replica %d answers Pull(%d)", (head, lane.step),
                 lanes=view.with_lane(index, _answered(view.model, lane)),
                 seen=max(view.seen, lane.step - 1))
    elif lane.step < end:
        view.add("replica %d sends a lane on from Pull(%d) to step %d", (head, lane.step, end),
                 lanes=view.with_lane(index, Lane(end, 0, 0, 0, lane.config, lane.computed)))


def _answered(model, lane):
    """The lane with the chain's answer. With both it computes its step, and pulls the next."""
    answers = lane.answers | CHAIN
    if answers == BOTH and lane.step <= model.steps_to_train:
        return Lane(lane.step + 1, 0, 1, 0, lane.config, max(lane.computed, lane.step))
    return lane._replace(answers=answers)


def _identity(view, head):
    return 1 + head + 8 * view.replicas[head].incarnation + 64 * view.epochs[head]


def _add_push(view, index, head):
    """A head takes the contribution that a lane keeps, by the place of its log end (R5)."""
    model, lane, replica = view.model, view.lanes[index], view.replicas[head]
    end, step = len(replica.log), lane.step - 1
    if not lane.keeps:
        return
    ok = 0
    if model.identity:
        ok = _identity(view, head)
        if lane.ok == ok or lane.ok and not model.resend:
            return
    elif replica.gate >> index & 1 or step != end + 1:
        return
    base = end if model.gate_from_log else replica.committed
    lanes = view.with_lane(index, lane._replace(ok=ok))
    if step <= base:
        view.add("replica %d drops push of step %d, OK", (head, step), lanes=lanes)
    elif step == base + 1:
        if step <= end:
            raise Violation("P2", "replica %d gathers step %d, which its log has", head, step)
        view.add("replica %d holds a push of step %d, OK", (head, step), lanes=lanes,
                 replicas=view.with_replica(head, replica._replace(gate=replica.gate | 1 << index)))
    else:
        model.note("a push beyond log end + 1 reached a head")


def _add_other_shard(view, index):
    """The other shard takes the contribution, and commits the step when it has both."""
    lane = view.lanes[index]
    clock, gate = view.other
    step = lane.step - 1
    if not lane.keeps or step != clock + 1 or gate >> index & 1:
        return
    gate |= 1 << index
    commits = gate == BOTH
    view.add("other shard takes push of step %d%s", (step, " and commits it" if commits else ""),
             other=(step, 0) if commits else (clock, gate))


def _add_window(view, index):
    """Async: the head appends a lane's next window, and acknowledges it when it is committed (R3)."""
    lane = view.lanes[index]
    head = view.history[lane.config].chain[0]
    if not view.accepts(head, lane.config):
        return
    replica, name = view.replicas[head], window(index, lane.step)
    if name not in replica.log:
        if len(replica.log) - replica.committed < view.model.uncommitted:
            view.add("replica %d appends window %d.%d at %d",
                     (head, index, lane.step, len(replica.log)),
                     replicas=view.with_replica(head, replica._replace(log=replica.log + (name,))))
    elif replica.log.index(name) < replica.committed:
        acknowledged = Lane(lane.step + 1, 0, 0, 0, lane.config, max(lane.computed, lane.step))
        view.add("replica %d acknowledges window %d.%d", (head, index, lane.step),
                 lanes=view.with_lane(index, acknowledged))


def _add_epochs(view, index):
    lane = view.lanes[index]
    known, place = view.history[lane.config].epoch, newest(view.history)
    for config, (epoch, _, written) in enumerate(view.history):
        if epoch > known and (view.model.skips or config == place or written != PERSISTED):
            view.add("a worker learns epoch %d", (epoch,),
                     lanes=view.with_lane(index, lane._replace(config=config)))


def _add_worker_kills(view, index):
    """The lane is hosted again: at most one step above the clocks, or with its first window."""
    model, computed = view.model, view.lanes[index].computed
    spent, config = view.spent("worker_kills"), newest(view.history)
    if not model.bsp:
        view.add("a worker is killed, its lane starts elsewhere at window 1", (), True,
                 lanes=view.with_lane(index, Lane(1, 0, 0, 0, config, computed)), budget=spent)
        return
    committed = max([replica.committed for replica in view.replicas] + [view.seen])
    last = min(min(committed, view.other[0]) + 1, model.steps_to_train + 1)
    for step in range(1, last + 1):
        view.add("a worker is killed, its lane starts elsewhere at step %d", (step,), True,
                 lanes=view.with_lane(index, Lane(step, 0, 0, 0, config, computed)), budget=spent)


def _add_late_pushes(view, index, head):
    """Any contribution ever computed, any window ever pushed, reaches a head."""
    model, lane, replica = view.model, view.lanes[index], view.replicas[head]
    end = len(replica.log)
    if model.bsp:
        if lane.computed > end and not replica.gate >> index & 1:
            view.add("a late push of step %d reaches replica %d", (end + 1, head), True,
                     replicas=view.with_replica(head, replica._replace(gate=replica.gate | 1 << index)))
    elif end - replica.committed < model.uncommitted:
        for number in range(1, min(model.steps_to_train, max(lane.step, lane.computed)) + 1):
            name = window(index, number)
            if name not in replica.log:
                view.add("a late push of window %d.%d reaches replica %d", (index, number, head), True,
                         replicas=view.with_replica(head, replica._replace(log=replica.log + (name,))))
