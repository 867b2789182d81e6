"""Steps of the scheduler: cuts begin, are given up and are listed; it dies and comes back."""

from cut.state import NO_WORDS


def add_steps(view):
    model, scheduler = view.model, view.scheduler
    if not scheduler.up:
        if not model.dies:
            view.add("scheduler restarts", (), scheduler=scheduler._replace(up=1))
        return
    dead = scheduler._replace(up=0, words=NO_WORDS)
    if model.dies:
        view.add("scheduler dies for good", (), True, scheduler=dead)
    elif view.budget.scheduler_kills:
        view.add("scheduler is killed", (), True, scheduler=dead,
                 budget=view.spent("scheduler_kills"))
    if not scheduler.pending and view.budget.cuts:
        view.add("scheduler persists: cut %d begins", (scheduler.next,), True,
                 scheduler=scheduler._replace(next=scheduler.next + 1, pending=scheduler.next,
                                              words=NO_WORDS), budget=view.spent("cuts"))
    for number in (0, 1):
        if view.shards[number].up:
            _add_hearing(view, number)


def _given_up(model, scheduler):
    """After the pending cut was given up: it comes back under a new number (C1)."""
    return scheduler._replace(next=scheduler.next if model.new_number else scheduler.pending,
                              pending=0, words=NO_WORDS)


def _with(pair, number, value):
    return (value, pair[1]) if number == 0 else (pair[0], value)


def _add_hearing(view, number):
    """The scheduler hears a server: that it began again, or its word on the pending cut (C4, C7)."""
    model, scheduler, shard = view.model, view.scheduler, view.shards[number]
    pending = scheduler.pending
    if shard.incarnation != scheduler.incarnations[number]:
        after = scheduler._replace(
            incarnations=_with(scheduler.incarnations, number, shard.incarnation))
        if pending and model.abort_restart:
            view.add("scheduler sees that server %d began again; cut %d is given up",
                     (number, pending), scheduler=_given_up(model, after))
        else:
            view.add("scheduler sees that server %d began again", (number,), scheduler=after)
        return
    word = shard.word
    if not pending or not word or word[0] != pending or scheduler.words[number] == word:
        return
    if not word[1]:
        view.add("scheduler hears that shard %d failed; cut %d is given up", (number, pending),
                 scheduler=_given_up(model, scheduler))
        return
    words = _with(scheduler.words, number, word)
    if all(words):
        model.check_listed(pending, words)
        view.add("scheduler lists cut %d", (pending,),
                 scheduler=scheduler._replace(pending=0, words=NO_WORDS, listed=pending))
    else:
        view.add("scheduler hears that shard %d has its file of cut %d", (number, pending),
                 scheduler=scheduler._replace(words=words))
