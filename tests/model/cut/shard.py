"""What a shard does with pushes, marks and cuts: functions of a shard that return it changed."""

from cut.state import NO_MARKS
from explore.model import Violation


def holds_back(model, shard, tag):
    """Whether a push with that tag waits until a cut is over (C3)."""
    return model.hold and tag > shard.over and tag >= shard.pending


def applied(model, shard, place, tag):
    """After a window's push. `place`: of the window among those of all lanes."""
    if shard.applied[place]:
        if model.ledger:
            return shard
        raise Violation("P2", "window %d.%d is applied twice", place // model.windows,
                        place % model.windows + 1)
    return shard._replace(applied=shard.applied[:place] + (tag + 1,) + shard.applied[place + 1:])


def ended(shard, through):
    """Every cut up to `through` is over."""
    if through <= shard.over:
        return shard
    if shard.pending <= through:
        return shard._replace(over=through, pending=through, marks=NO_MARKS)
    return shard._replace(over=through)


def begun(shard, cut):
    if cut > shard.pending and cut > shard.over:
        return shard._replace(pending=cut, marks=NO_MARKS)
    return shard


def marked(shard, lane, cut, window):
    """After a lane's mark: its pushes from `window` on belong to no file of that cut."""
    if cut <= shard.over or cut < shard.pending:
        return shard
    shard = begun(shard, cut)
    marks = (window, shard.marks[1]) if lane == 0 else (shard.marks[0], window)
    return shard._replace(marks=marks)
