"""Steps of the target while the move is on: it copies, reports, and serves."""

from explore.model import Violation
from move.state import RUNS, TARGET


def add_steps(view):
    model, target, copying, epoch = view.model, view.servers[TARGET], view.copying, view.epoch
    if (target.up != RUNS or target.has_data or not view.scheduler.moving or target.epoch != epoch or
            copying.early):
        return
    for place, number in enumerate(model.sources):
        _add_copy(view, place, number)
    if copying.reported != epoch and all(
            seal == epoch or not model.seal and clock >= 0 for clock, seal in copying.copies):
        if len({clock for clock, _ in copying.copies}) > 1:
            raise Violation("P3", "shards sealed at different clocks are merged: %s", copying.copies)
        view.add("target reports: complete for epoch %d", (epoch,),
                 copying=copying._replace(reported=epoch))
    if not model.serve_after and copying.reported == epoch:
        clock = copying.copies[0][0]
        view.add("target serves at clock %d before epoch %d is persisted", (clock, epoch + 1),
                 servers=view.with_server(TARGET, target._replace(
                     clock=clock, gate=0, seal=0, pre_image=1, has_data=1)),
                 copying=copying._replace(early=1))


def _add_copy(view, place, number):
    """What a source has now, its SEAL included."""
    source, copying = view.servers[number], view.copying
    copy = (source.clock, source.seal)
    if source.up != RUNS or not source.has_data or copying.copies[place] == copy:
        return
    copies = copying.copies[:place] + (copy,) + copying.copies[place + 1:]
    view.add("target copies from server %d through clock %d%s",
             (number, source.clock, " and SEAL of epoch %d" % source.seal if source.seal else ""),
             copying=copying._replace(copies=copies))
