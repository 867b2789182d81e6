"""Steps of the scheduler: configurations that it writes, replicas that join, members that are full."""

from chain.state import (FORGOTTEN, LEARNER, MEMBER, PERSISTED, RUNS, TOLD, Configuration, Replica,
                         Scheduler)


def add_steps(view):
    last = len(view.history) - 1
    while view.history[last].written == FORGOTTEN:
        last -= 1
    if view.history[last].written == TOLD:
        _add_persist(view, last)
        return
    _add_removals(view, last)
    _add_return_of_removed(view, last)
    for number in range(len(view.replicas)):
        _add_join(view, last, number)
    _add_full(view, last)


def _add_persist(view, last):
    """R8 dropped: the scheduler persists what it has told already, or forgets it."""
    history, full = view.scheduler
    told = history[last]

    def rewritten(written):
        return Scheduler(history[:last] + (told._replace(written=written),) + history[last + 1:], full)

    view.add("scheduler persists epoch %d", (told.epoch,), scheduler=rewritten(PERSISTED))
    if view.budget.scheduler_crashes:
        view.add("scheduler restarts and has forgotten epoch %d", (told.epoch,), True,
                 scheduler=rewritten(FORGOTTEN), budget=view.spent("scheduler_crashes"))


def _next(view, last, chain, full, written=PERSISTED):
    epoch = view.history[last].epoch + 1
    return Scheduler(view.history + (Configuration(epoch, chain, written),), full)


def _add_removals(view, last):
    """A member is removed if another full member answers (R9)."""
    model, full = view.model, view.scheduler.full
    epoch, chain, _ = view.history[last]
    for gone in chain:
        left = tuple(n for n in chain if n != gone)
        answers = [n for n in left if view.replicas[n].up == RUNS and
                   view.replicas[n].member == MEMBER and (full >> n & 1 or not model.only_full)]
        if not answers or model.only_full and not full >> left[0] & 1:
            continue
        dead = view.replicas[gone].up != RUNS or view.replicas[gone].member != MEMBER
        if not dead and not view.budget.wrong:
            continue
        still_full = full & ~(1 << gone)
        if not model.only_full:
            still_full |= 1 << left[0]
        view.add("scheduler %s epoch %d: chain %s, %s replica %d is out",
                 ("persists" if model.persist_first else "tells", epoch + 1, left,
                  "dead" if dead else "LIVE", gone), not dead,
                 scheduler=_next(view, last, left, still_full,
                                 PERSISTED if model.persist_first else TOLD),
                 budget=view.budget if dead else view.spent("wrong"))


def _add_return_of_removed(view, last):
    """R9 dropped: with the only member dead, a replica that was removed is promoted."""
    epoch, chain, _ = view.history[last]
    if view.model.only_members or len(chain) > 1 or view.replicas[chain[0]].up == RUNS:
        return
    for number, replica in enumerate(view.replicas):
        if number not in chain and replica.up == RUNS and replica.member == MEMBER:
            view.add("scheduler persists epoch %d: removed replica %d is head again",
                     (epoch + 1, number),
                     scheduler=_next(view, last, (number,), 1 << number,
                                     PERSISTED if view.model.persist_first else TOLD))


def _add_join(view, last, number):
    """A replica outside of the chain copies an image, and becomes a learner at its end (R13, R14)."""
    model, replica = view.model, view.replicas[number]
    epoch, chain, _ = view.history[last]
    if number in chain or replica.up != RUNS:
        return
    if view.budget.joins and replica.member != LEARNER:
        source = chain[-1] if model.copy_from_tail else chain[0]
        copied = view.replicas[source]
        if view.acts[source] and copied.config == last:
            keeps = not model.discard_log and len(replica.log) >= len(copied.log)
            log = replica.log if keeps else copied.log
            learner = Replica(RUNS, last, log, 0, 0, 0, replica.incarnation,
                              copied.pre_image if model.image_pre else 0, LEARNER, 0)
            view.add("replica %d copies an image from %d (%d entries)", (number, source, len(log)),
                     replicas=view.with_replica(number, learner), budget=view.spent("joins"))
    if replica.member == LEARNER:
        longer, full = chain + (number,), view.scheduler.full
        joined = view.with_replica(number, replica._replace(member=MEMBER, sent=0))
        view.add("scheduler persists epoch %d: chain %s, %d not yet full", (epoch + 1, longer, number),
                 replicas=joined, scheduler=_next(view, last, longer, full))
        if not model.full_in_epoch and view.replicas[chain[-1]].log == replica.log:
            view.add("scheduler persists epoch %d: chain %s, %d full at once",
                     (epoch + 1, longer, number), replicas=joined,
                     scheduler=_next(view, last, longer, full | 1 << number))


def _add_full(view, last):
    """A learner is full when it has all that its predecessor has in the same epoch (R13)."""
    history, full = view.scheduler
    for place, number in enumerate(history[last].chain):
        if not place or full >> number & 1 or not view.acts[number]:
            continue
        known = view.chains[number].index(number)  # its place by what it knows
        if not known:
            continue
        before = view.chains[number][known - 1]
        if (view.acts[before] and view.epochs[before] == view.epochs[number] and
                view.replicas[before].log == view.replicas[number].log):
            view.add("replica %d has all that %d has in epoch %d: full",
                     (number, before, view.epochs[number]),
                     scheduler=Scheduler(history, full | 1 << number))
