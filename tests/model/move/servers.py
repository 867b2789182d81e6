"""Steps of every server: commits, epochs that it learns, kills, restarts, the SEAL of a source."""

from explore.model import Violation
from move.state import KILLED, NEW_MAP, NO_COPY, OLD_MAP, RUNS, SEAL_NOW, TARGET


def add_steps(view, number):
    server = view.servers[number]
    if view.serving[number] and server.gate == 3 and not view.is_sealed(server):
        _add_commit(view, number)
    if server.up == RUNS:
        for epoch in range(server.epoch + 1, view.epoch + 1):
            _add_epoch(view, number, epoch)
        if view.budget.kills:
            view.add("KILL server %d", (number,), True, budget=view.spent("kills"),
                     servers=view.with_server(number, server._replace(up=KILLED, gate=0)))
    if server.up == KILLED:
        _add_restart(view, number)
    if number in view.model.sources and server.up == RUNS:
        _add_seal(view, number)


def _add_commit(view, number):
    server, step = view.servers[number], view.servers[number].clock + 1
    if (not view.model.owns(number, view.maps, view.epoch) or
            number == TARGET and view.maps[-1] == OLD_MAP):
        raise Violation("P8", "server %d commits step %d in epoch %d, and is no owner in epoch %d",
                        number, step, server.epoch, view.epoch)
    view.add("server %d commits step %d", (number, step), servers=view.with_server(
        number, server._replace(clock=step, gate=0, pre_image=1, has_data=1)))


def _add_epoch(view, number, epoch):
    server = view.servers[number]
    if number == TARGET:
        _add_target_epoch(view, epoch)
    elif view.model.owns(number, view.maps, epoch):
        view.add("server %d learns epoch %d, and owns", (number, epoch), servers=view.with_server(
            number, server._replace(epoch=epoch, gate=0)))
    else:
        view.add("server %d learns epoch %d, and drops its data", (number, epoch),
                 servers=view.with_server(number, server._replace(
                     epoch=epoch, gate=0, seal=0, pre_image=0, has_data=0)))


def _add_target_epoch(view, epoch):
    """The target serves its copy when it knows the new map, and drops it when the move is off."""
    model, target, copying = view.model, view.servers[TARGET], view.copying
    if view.maps[epoch - 1] != NEW_MAP:
        view.add("target learns epoch %d: the move is off", (epoch,),
                 servers=view.with_server(TARGET, target._replace(
                     epoch=epoch, clock=0, gate=0, seal=0, pre_image=0, has_data=0)),
                 copying=copying._replace(copies=(NO_COPY,) * len(model.sources), early=0))
    elif copying.early:
        view.add("target learns epoch %d", (epoch,),
                 servers=view.with_server(TARGET, target._replace(epoch=epoch)),
                 copying=copying._replace(early=0))
    else:
        clock = copying.copies[0][0]
        view.add("target learns epoch %d and serves at clock %d", (epoch, clock),
                 servers=view.with_server(TARGET, target._replace(
                     epoch=epoch, clock=clock, gate=0, seal=0,
                     pre_image=1 if model.move_pre else 0, has_data=1)),
                 copying=copying._replace(early=0))


def _add_restart(view, number):
    model, server, copying = view.model, view.servers[number], view.copying
    after = server._replace(up=RUNS, seal=server.seal if model.seal_durable else 0)
    if number == TARGET and not model.copy_durable:
        clock = -1 if view.maps[-1] == OLD_MAP else 0
        view.add("target restarts without its copy", (), servers=view.with_server(
            TARGET, after._replace(clock=0, gate=0, seal=0, pre_image=1)),
                 copying=copying._replace(copies=((clock, 0),) * len(model.sources), early=0))
    else:
        view.add("server %d restarts from its log", (number,),
                 servers=view.with_server(number, after))


def _add_seal(view, number):
    """The source seals at the step that the scheduler chose (M2, M10)."""
    model, server, scheduler = view.model, view.servers[number], view.scheduler
    if server.seal and server.seal == server.epoch and model.self_unseal:
        view.add("server %d waited long and lifts its seal", (number,), True,
                 servers=view.with_server(number, server._replace(seal=0)))
    if not scheduler.moving:
        return
    if (model.seal and scheduler.seal and server.epoch == view.epoch and server.seal != view.epoch and
            scheduler.seal in (SEAL_NOW, server.clock + 1)):
        view.add("server %d writes SEAL of epoch %d at clock %d", (number, view.epoch, server.clock),
                 servers=view.with_server(number, server._replace(seal=view.epoch)))
    if server.has_data and view.copying.reported == view.epoch and not model.drop_late:
        view.add("server %d drops its data, the target has it", (number,),
                 servers=view.with_server(number, server._replace(has_data=0)))
