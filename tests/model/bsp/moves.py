"""The roll-back of a job under a new generation, and the move of shard 1 under a new epoch."""

from bsp.commits import recovered
from bsp.state import Server, fresh_lane


def add_roll_back(view):
    """To the checkpoint of step 0, under generation 2."""
    if not view.generations:
        return
    model = view.model
    began, workers, servers = view.generations
    if not began:
        view.add("a shard is declared lost: roll-back under generation 2", (), True,
                 generations=(1, workers, servers))
        return
    for worker in range(model.workers):
        if workers[worker] == 1:
            lanes = tuple(fresh_lane(lane.number, worker, 1, lane.zombie) if lane.worker == worker
                          else lane for lane in view.lanes)
            view.add("worker%d adopts generation 2", (worker,), lanes=lanes,
                     generations=(1, _adopted(workers, worker), servers))
    for number, server in enumerate(view.servers):
        if servers[number] == 1 and server.up:
            zero = model.serial[0]
            view.add("inst%d adopts generation 2, back to step 0", (number,),
                     generations=(1, workers, _adopted(servers, number)),
                     servers=view.with_server(number, server._replace(
                         clock=0, value=zero, pre_image=None, pending=0, gate=0,
                         image=(0, zero, None), log=())))


def _adopted(generations, place):
    return generations[:place] + (2,) + generations[place + 1:]


def add_move(view):
    """Epoch 2 is persisted, workers learn it, the source seals, the target copies."""
    if not view.move:
        return
    model, move = view.model, view.move
    zombies = view.zombie_workers()
    if zombies and not move.fenced and model.fence and move.persisted:
        view.add("scheduler fences the zombie worker at every reachable server", (),
                 move=move._replace(fenced=1))
    if not move.persisted:
        view.add("scheduler persists epoch 2 (shard 1 to inst2)", (), True,
                 move=move._replace(persisted=1))
        return
    for worker in range(model.workers):
        if view.epochs[worker] == 1 and worker not in zombies:
            lanes = tuple(lane._replace(second_ok=0) if lane.worker == worker else lane
                          for lane in view.lanes)
            view.add("worker%d acknowledges epoch 2", (worker,), lanes=lanes,
                     epochs=view.epochs[:worker] + (2,) + view.epochs[worker + 1:])
    if move.copied:
        return
    if model.seal and not move.sealed and view.servers[1].up:
        view.add("inst1 seals shard 1", (), move=move._replace(sealed=1))
    if ((not model.seal or move.sealed) and
            (not model.copy_after_acks or view.all_workers_know())):
        _add_copy(view)


def _add_copy(view):
    """The target takes what the source's log and image hold."""
    model, source = view.model, view.servers[1]
    if model.seal and (not source.up or source.pending):
        return
    copy = recovered(model, Server(0, 0, (), None, 0, 0, 0, source.image, source.log, 0, None),
                     view.seen[1], "inst2 (copy)")
    pre_image = copy.pre_image if model.move_pre else None
    image, log = (copy.clock, copy.value, pre_image), ()
    if model.shared_log:
        image, log = source.image, source.log
    target = Server(1, copy.clock, copy.value, pre_image, 0, 0, 1, image, log, 0, None)
    view.add("inst2 copies shard 1 at clock %d", (copy.clock,),
             servers=view.servers[:2] + (target,), move=view.move._replace(copied=1))
