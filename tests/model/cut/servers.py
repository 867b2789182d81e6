"""Steps of the servers: restarts, pushes that they let go, files of cuts, kills."""

from cut.shard import applied, begun, ended, holds_back
from cut.state import NO_MARKS, NOTHING_HELD, done_word, failed_word


def add_steps(view, number):
    model, shard = view.model, view.shards[number]
    if not shard.up:
        over = shard.over if model.over_durable else 0
        view.add("server %d restarts", (number,), shards=view.with_shard(number, shard._replace(
            up=1, over=over, pending=over, marks=NO_MARKS, held=NOTHING_HELD, ordered=0, word=(),
            incarnation=shard.incarnation + 1)))
        return
    _add_releases(view, number)
    if view.scheduler.up:
        _add_directive(view, number)
    _add_file(view, number)
    if model.timer and shard.pending > shard.over:
        _add_timer(view, number)
    if view.budget.kills:
        dead = shard._replace(up=0, pending=0, marks=NO_MARKS, held=NOTHING_HELD, ordered=0, word=())
        view.add("KILL server %d", (number,), True, shards=view.with_shard(number, dead),
                 budget=view.spent("kills"))


def _add_releases(view, number):
    """A push that nothing holds back any more goes."""
    model, shard = view.model, view.shards[number]
    for lane in (0, 1):
        if not shard.held[lane] or holds_back(model, shard, shard.held[lane][1]):
            continue
        window, tag = shard.held[lane]
        held = ((), shard.held[1]) if lane == 0 else (shard.held[0], ())
        after = applied(model, shard._replace(held=held), lane * model.windows + window - 1, tag)
        view.add("shard %d lets window %d.%d go", (number, lane, window),
                 shards=view.with_shard(number, after))


def _add_directive(view, number):
    """What the scheduler orders: the pending cut, and through which all are over (C5)."""
    model, shard, scheduler = view.model, view.shards[number], view.scheduler
    through, after = view.given_up_through(), shard
    if model.given_up and (model.every_ended or not scheduler.listed or through > scheduler.listed):
        after = ended(shard, through)
    if scheduler.pending:
        after = begun(after, scheduler.pending)
    after = after._replace(ordered=scheduler.pending)
    if after != shard:
        view.add("shard %d is told: take cut %d, given up through %d",
                 (number, scheduler.pending, through), shards=view.with_shard(number, after))


def _add_file(view, number):
    """A shard that has the order and the marks of all lanes writes its file (C7), or fails to."""
    model, shard = view.model, view.shards[number]
    cut = shard.ordered
    if not cut or cut != shard.pending:
        return
    if cut <= shard.over and (model.timer_final or shard.word != failed_word(cut)):
        return

    def add(text, after, **more):
        view.add(text, (number, cut), bool(more), shards=view.with_shard(number, after), **more)

    if min(shard.marks) >= 0:
        add("shard %d has all marks and writes its file of cut %d",
            shard._replace(over=cut, word=done_word(cut, shard.applied, shard.marks)))
        if view.budget.failures:
            add("shard %d has all marks, and its file of cut %d FAILS",
                shard._replace(over=cut, word=failed_word(cut)), budget=view.spent("failures"))
    elif view.budget.failures:
        after = ended(shard, cut) if model.failure_releases else shard
        add("shard %d FAILS cut %d before all marks are in", after._replace(word=failed_word(cut)),
            budget=view.spent("failures"))


def _add_timer(view, number):
    """A shard that has waited long enough ends the cut by itself (C6)."""
    model, shard = view.model, view.shards[number]
    if model.timer_final:
        after = ended(shard, shard.pending)._replace(word=failed_word(shard.pending))
        view.add("shard %d waited long enough and gives up cut %d", (number, shard.pending),
                 shards=view.with_shard(number, after))
    elif any(shard.held):
        after = shard._replace(held=NOTHING_HELD)
        for lane, push in enumerate(shard.held):
            if push:
                after = applied(model, after, lane * model.windows + push[0] - 1, push[1])
        view.add("shard %d waited long enough and lets its held pushes go, cut %d still open",
                 (number, shard.pending), shards=view.with_shard(number, after))
