"""How entries go down the chain, and acknowledgements come back to the head."""

from chain.state import KILLED, MEMBER, OWN, RUNS, TAKEN, window
from explore.model import Violation


def add_steps(view, number):
    if not view.acts[number]:
        return
    chain = view.chains[number]
    place = chain.index(number)
    if place == 0:
        _add_append(view, number)
        _add_acknowledgements(view, number, chain[-1])
        if not view.model.append_first and view.budget.kills and len(chain) > 1:
            _add_forward_before_append(view, number, chain[1])
    if place + 1 < len(chain):
        _add_forward(view, number, chain[place + 1])


def _add_append(view, number):
    """Bsp: the head has every lane of the next step, and appends it when all before is committed (R6)."""
    model, head = view.model, view.replicas[number]
    end = len(head.log)
    if model.bsp and head.gate == 3 and head.committed == end and not head.behind:
        committed = head.committed if model.wait_tail else end + 1
        view.add("replica %d appends step %d", (number, end + 1), replicas=view.with_replica(
            number, head._replace(log=head.log + (end + 1,), committed=committed, gate=0,
                                  pre_image=1, behind=OWN if model.apply_apart else 0)))
    if not model.bsp and not model.wait_tail and head.committed < end:
        view.add("replica %d counts its own append as commit", (number,),
                 replicas=view.with_replica(number, head._replace(committed=end)))


def _add_acknowledgements(view, number, last):
    """The tail's acknowledgement of an entry in the head's epoch commits it (R3, R4)."""
    model, head, tail = view.model, view.replicas[number], view.replicas[last]
    end, taken = len(head.log), len(tail.log)
    if last == number:
        if head.committed < end:
            view.add("replica %d, alone, commits %d", (number, end),
                     replicas=view.with_replica(number, head._replace(committed=end)))
    elif (tail.up == RUNS and tail.member == MEMBER and taken > head.arriving and
          (not model.forward_epoch or view.acts[last] and view.epochs[last] == view.epochs[number])):
        view.add("tail %d acknowledges %d in epoch %d", (last, taken, view.epochs[number]),
                 replicas=view.with_replica(number, head._replace(arriving=taken)))
    committed = min(head.arriving, end)
    if committed > head.committed:
        view.add("replica %d gets the acknowledgement: %d is committed", (number, committed),
                 replicas=view.with_replica(number, head._replace(committed=committed)))


def killed(replica):
    return replica._replace(up=KILLED, committed=0, arriving=0, gate=0, behind=0)


def _add_forward_before_append(view, number, following):
    """R1 dropped: the successor has an entry that the head's own log has not."""
    model, head, successor = view.model, view.replicas[number], view.replicas[following]
    end = len(head.log)
    if (not view.acts[following] or view.epochs[following] != view.epochs[number] or
            len(successor.log) != end):
        return

    def add(text, arguments, entry):
        after = view.with_replica(following, successor._replace(log=successor.log + (entry,)))
        view.add(text, arguments, True, budget=view.spent("kills"),
                 replicas=view.with_replica(number, killed(head), after))

    if model.bsp:
        if head.gate == 3 and head.committed == end:
            add("replica %d forwards step %d to %d and is KILLED before its own append",
                (number, end + 1, following), end + 1)
        return
    for index, lane in enumerate(view.lanes):
        name = window(index, lane.step)
        if (lane.step <= model.steps_to_train and name not in head.log and
                view.accepts(number, lane.config)):
            add("replica %d forwards window %d.%d to %d and is KILLED before its own append",
                (number, index, lane.step, following), name)


def _add_forward(view, number, following):
    """A replica sends its successor the entry at that one's log end (R2, R7).

    That one acknowledges it from the log, before its rows have it, and applies it before the next.
    """
    model, source, target = view.model, view.replicas[number], view.replicas[following]
    if target.up != RUNS or target.member != MEMBER:
        return
    if model.forward_epoch:
        if not view.acts[following] or view.epochs[following] != view.epochs[number]:
            return
    elif following not in view.chains[following]:
        return
    taken = len(target.log)
    if (model.forward_epoch and target.log != source.log[:taken] and model.log_identity and
            model.boot_id and (model.append_first or not model.bsp)):
        raise Violation("P1", "replicas %d and %d diverge: %s, %s", number, following, source.log,
                        target.log)
    if target.behind or taken >= len(source.log) or not model.reforward and source.sent != taken:
        return
    after = view.with_replica(following, target._replace(
        log=target.log + (source.log[taken],), pre_image=1 if model.backup_pre else 0,
        behind=TAKEN if model.apply_apart else 0))
    if not model.reforward:
        after = view.with_replica(number, source._replace(sent=taken + 1), after)
    view.add("replica %d forwards entry %d to %d", (number, taken, following), replicas=after)
