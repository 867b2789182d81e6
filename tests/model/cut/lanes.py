"""Steps of the lanes: pushes of windows, marks of cuts, and hosts that change.

A driver is lane 0, lane 1, or 2: the old host of a lane that has another one now. What that one does
counts as a fault, since nothing may depend on it.
"""

from cut.shard import applied, holds_back, marked
from cut.state import BOUNDARY, MARKING, NO_WORDS, PUSHING, Lane


def add_steps(view, driver):
    number, lane = (driver, view.lanes[driver]) if driver < 2 else view.old_host
    if lane.phase == BOUNDARY:
        _add_begin(view, driver, number, lane)
    elif lane.phase == PUSHING:
        if not view.model.flush and lane.told > lane.tag and driver < 2:
            _add_mark_without_flush(view, driver, number, lane)
        for shard in (0, 1):
            if not lane.answered >> shard & 1 and view.shards[shard].up:
                _add_push(view, driver, number, lane, shard)
    else:
        for shard in (0, 1):
            if not lane.answered >> shard & 1 and view.shards[shard].up:
                _add_mark(view, driver, number, lane, shard)
    if driver < 2:
        _add_orders(view, driver, lane)
        if view.budget.worker_kills and view.scheduler.up and not view.old_host:
            _add_new_host(view, driver, lane)


def _name(driver, number):
    return "lane %d" % number if driver < 2 else "the old host of lane %d" % number


def _with(view, driver, number, lane):
    """What changes of the state where a driver changes."""
    if driver == 2:
        return {"old_host": (number, lane)}
    return {"lanes": (lane, view.lanes[1]) if driver == 0 else (view.lanes[0], lane)}


def _at_boundary(model, window, told, tag):
    """A lane that has finished a window or its marks: it marks first, then it pushes (C2)."""
    if told > tag:
        return Lane(MARKING, window, 0, told, tag, told)
    return Lane(PUSHING if window <= model.windows else BOUNDARY, window, 0, told, tag, 0)


def _add_begin(view, driver, number, lane):
    after = _at_boundary(view.model, lane.window, lane.told, lane.tag)
    if after.phase == MARKING:
        view.add("%s starts to mark cut %d at window %d",
                 (_name(driver, number), lane.told, lane.window), driver == 2,
                 **_with(view, driver, number, after))
    elif after.phase == PUSHING:
        view.add("%s starts to push window %d with tag %d",
                 (_name(driver, number), lane.window, lane.tag), driver == 2,
                 **_with(view, driver, number, after))


def _add_mark_without_flush(view, driver, number, lane):
    """C2 dropped: the mark counts a push on its way as pushed."""
    view.add("%s marks cut %d at window %d with a push on its way",
             (_name(driver, number), lane.told, lane.window + 1),
             **_with(view, driver, number,
                     Lane(MARKING, lane.window + 1, 0, lane.told, lane.tag, lane.told)))


def _add_push(view, driver, number, lane, place):
    """A shard takes a push, holds it back, or has its window already (C3)."""
    model, shard = view.model, view.shards[place]
    window = number * model.windows + lane.window - 1
    answered = lane.answered | 1 << place
    if answered == 3:
        after = _at_boundary(model, lane.window + 1, lane.told, lane.tag)
    else:
        after = Lane(PUSHING, lane.window, answered, lane.told, lane.tag, 0)
    changes = _with(view, driver, number, after)
    is_old = driver == 2
    if shard.applied[window] and model.ledger:
        view.add("shard %d has window %d.%d already, OK", (place, number, lane.window), is_old,
                 **changes)
    elif holds_back(model, shard, lane.tag):
        push = (lane.window, lane.tag)
        if shard.held[number] != push and not (is_old and shard.held[number]):
            held = (push, shard.held[1]) if number == 0 else (shard.held[0], push)
            view.add("shard %d holds window %d.%d with tag %d back",
                     (place, number, lane.window, lane.tag), is_old,
                     shards=view.with_shard(place, shard._replace(held=held)))
    else:
        shards = view.with_shard(place, applied(model, shard, window, lane.tag))
        view.add("shard %d applies window %d.%d, OK", (place, number, lane.window), is_old,
                 shards=shards, **changes)
        if view.budget.lost_oks:
            view.add("shard %d applies window %d.%d, OK is lost", (place, number, lane.window), True,
                     shards=shards, budget=view.spent("lost_oks"))


def _add_mark(view, driver, number, lane, place):
    answered = lane.answered | 1 << place
    if answered == 3:
        after = _at_boundary(view.model, lane.window, lane.told, lane.marking)
    else:
        after = Lane(MARKING, lane.window, answered, lane.told, lane.tag, lane.marking)
    shard = marked(view.shards[place], number, lane.marking, lane.window)
    view.add("%s marks cut %d at shard %d, next window %d",
             (_name(driver, number), lane.marking, place, lane.window), driver == 2,
             shards=view.with_shard(place, shard), **_with(view, driver, number, after))


def _add_orders(view, driver, lane):
    """The lane hears of the pending cut, or late of one that is over."""
    scheduler = view.scheduler
    if scheduler.up and scheduler.pending > lane.told:
        view.add("%s is told of cut %d", (_name(driver, driver), scheduler.pending),
                 **_with(view, driver, driver, lane._replace(told=scheduler.pending)))
    if view.budget.late_orders:
        for cut in range(lane.told + 1, scheduler.next):
            if cut != scheduler.pending:
                view.add("%s is told late of cut %d", (_name(driver, driver), cut), True,
                         budget=view.spent("late_orders"),
                         **_with(view, driver, driver, lane._replace(told=cut)))


def _add_new_host(view, driver, lane):
    """The lane changes its host: it begins with its first window, and the pending cut is given up (C4)."""
    model, scheduler = view.model, view.scheduler
    gives_up = scheduler.pending and model.abort_moved
    told = 0 if model.abort_moved else scheduler.pending
    after = _with(view, driver, driver, Lane(BOUNDARY, 1, 0, told, 0, 0))
    if gives_up:
        scheduler = scheduler._replace(
            up=1, next=scheduler.next if model.new_number else scheduler.pending, pending=0,
            words=NO_WORDS)
    view.add("lane %d is given to another host%s, and starts at window 1",
             (driver, "; cut %d is given up" % view.scheduler.pending if gives_up else ""), True,
             old_host=(driver, lane) if model.old_host else (), scheduler=scheduler,
             budget=view.spent("worker_kills"), **after)
