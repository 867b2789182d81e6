"""Kills of servers and workers, restarts, and live workers that are declared dead."""

from itertools import product

from bsp.commits import recovered
from bsp.state import fresh_lane


def add_server_faults(view):
    for number, server in enumerate(view.servers):
        if number == 2 and not view.copied:
            continue
        if not server.up:
            _add_restart(view, number)
        elif view.budget.server_kills and view.budget.kills:
            _add_server_kill(view, number)


def _add_server_kill(view, number):
    model, server, budget, move = view.model, view.servers[number], view.budget, view.move
    spent = budget._replace(server_kills=budget.server_kills - 1, kills=budget.kills - 1)
    if move and number == 1 and move.sealed and not model.seal_durable:
        move = move._replace(sealed=0)
    records = len(server.log)
    for kept in range(records + 1) if model.memory else (records,):
        dead = server._replace(up=0, clock=0, value=(), pre_image=None, pending=0, gate=0,
                               log=server.log[:kept])
        view.add("KILL inst%d%s",
                 (number, " (log keeps %d records)" % kept if model.memory else ""), True,
                 servers=view.with_server(number, dead), budget=spent, move=move)


def _add_restart(view, number):
    superseded = number == 1 and view.copied
    seen = None if superseded or view.rolls_back() else view.seen[0 if number == 0 else 1]
    view.add("inst%d restarts and replays", (number,), servers=view.with_server(
        number, recovered(view.model, view.servers[number], seen, "inst%d" % number)))


def _starts(view):
    """The steps at which a re-hosted lane may start: at most the lowest clock + 1."""
    model = view.model
    owners = (view.servers[0], view.servers[2] if view.copied else view.servers[1])
    clocks = [server.clock if server.up else 0 for server in owners]
    if view.rolls_back() and 1 in view.generations[2]:
        steps = [1]  # clocks of an older generation do not count
    elif model.starts == "min":
        steps = [min(clocks) + 1] if all(server.up for server in owners) else [1]
    elif model.starts == "max":
        steps = [max(clocks) + 1]
    else:
        steps = range(1, min(clocks) + 2)
    return [step for step in steps if step <= model.steps_to_train + 1]


def add_worker_kills(view):
    """A worker dies; its lanes are hosted again in any grouping."""
    model, budget = view.model, view.budget
    if not budget.worker_kills or not budget.kills:
        return
    spent = budget._replace(worker_kills=budget.worker_kills - 1, kills=budget.kills - 1)
    for worker in range(model.workers):
        mine = [i for i, lane in enumerate(view.lanes) if lane.worker == worker and not lane.zombie]
        if not mine:
            continue
        others = tuple(lane for lane in view.lanes if lane.zombie and lane.worker != worker)
        epochs = view.epochs
        if view.move and view.move.persisted:
            epochs = epochs[:worker] + (2,) + epochs[worker + 1:]
        for step in _starts(view):
            for hosts in product(range(model.workers), repeat=len(mine)):
                lanes, replies = list(view.lanes[:model.lanes]), list(view.replies)
                for i, host in zip(mine, hosts):
                    lanes[i] = fresh_lane(view.lanes[i].number, host, step)
                    if replies:
                        replies[i] = None
                view.add("KILL worker%d; lanes re-hosted %s, start at step %d",
                         (worker, list(hosts), step), True, lanes=tuple(lanes) + others,
                         budget=spent, epochs=epochs, replies=tuple(replies))


def add_zombies(view):
    """A live worker is declared dead: its lanes are hosted again, and the old driver goes on."""
    model, budget = view.model, view.budget
    if not budget.zombies:
        return
    spent = budget._replace(zombies=budget.zombies - 1)
    if model.one_worker:
        for step in _starts(view):
            lanes = tuple(fresh_lane(lane.number, 1, step) for lane in view.lanes)
            view.add("live worker0 declared dead, all lanes re-hosted on worker1 at step %d",
                     (step,), True, lanes=lanes + tuple(l._replace(zombie=1) for l in view.lanes),
                     budget=spent, replies=(None,) * len(view.replies))
        return
    for i in range(model.lanes):
        lane = view.lanes[i]
        for host in range(model.workers):
            if host == lane.worker:
                continue
            for step in _starts(view):
                lanes = view.with_lane(i, fresh_lane(lane.number, host, step))
                view.add("lane%d taken from live worker%d, re-hosted on worker%d at step %d",
                         (lane.number, lane.worker, host, step), True,
                         lanes=lanes + (lane._replace(zombie=1),), budget=spent)
