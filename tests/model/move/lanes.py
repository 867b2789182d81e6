"""Steps of the lanes and their workers: pulls, pushes, epochs that they learn, and their deaths."""

from move.state import Lane


def add_steps(view, index):
    lane = view.lanes[index]
    for number in sorted(set(view.model.owners[view.maps[lane.epoch - 1]])):
        if view.serving[number] and (not view.model.request_epoch or
                                     view.servers[number].epoch == lane.epoch):
            _add_pull(view, index, number)
            _add_push(view, index, number)
    for epoch in range(lane.epoch + 1, view.epoch + 1):
        view.add("a worker learns epoch %d", (epoch,),
                 lanes=view.with_lane(index, lane._replace(epoch=epoch)))
    if view.budget.worker_kills:
        _add_worker_kills(view, index)
    if view.model.late:
        _add_late_pushes(view, index)


def _add_pull(view, index, number):
    model, lane, server = view.model, view.lanes[index], view.servers[number]
    units = [unit for unit in view.units[number]
             if model.owner(view.maps, lane.epoch, unit) == number]
    bits = sum(1 << unit for unit in units)
    if lane.answers & bits == bits or not model.sealed_pulls and view.is_sealed(server):
        return
    if lane.step == server.clock + 1 or lane.step == server.clock and server.pre_image:
        answers = lane.answers | bits
        after = lane._replace(answers=answers)
        if answers == 3 and lane.step <= model.steps_to_train:
            after = Lane(lane.step + 1, 0, 1, lane.epoch, max(lane.computed, lane.step))
        seen = tuple(max(clock, lane.step - 1) if unit in units else clock
                     for unit, clock in enumerate(view.seen))
        view.add("server %d answers Pull(%d)", (number, lane.step),
                 lanes=view.with_lane(index, after), seen=seen)
    elif lane.step < server.clock:
        view.add("server %d sends a lane on from Pull(%d) to step %d",
                 (number, lane.step, server.clock), lanes=view.with_lane(
                     index, Lane(server.clock, 0, 0, lane.epoch, lane.computed)))


def _add_push(view, index, number):
    lane, server = view.lanes[index], view.servers[number]
    if lane.keeps and lane.step == server.clock + 2 and not server.gate >> index & 1:
        view.add("server %d holds a push of step %d", (number, lane.step - 1),
                 servers=_with_push(view, index, number))


def _with_push(view, index, number):
    server = view.servers[number]
    return view.with_server(number, server._replace(gate=server.gate | 1 << index))


def _add_worker_kills(view, index):
    """The lane is hosted again, at most one step above the clocks."""
    last = min(min(view.seen) + 1, view.model.steps_to_train + 1)
    for step in range(1, last + 1):
        after = Lane(step, 0, 0, view.epoch, view.lanes[index].computed)
        view.add("a worker is killed, its lane starts elsewhere at step %d", (step,), True,
                 lanes=view.with_lane(index, after), budget=view.spent("worker_kills"))


def _add_late_pushes(view, index):
    """Any contribution ever computed reaches a server that serves."""
    for number, server in enumerate(view.servers):
        if (view.serving[number] and view.lanes[index].computed > server.clock and
                not server.gate >> index & 1):
            view.add("a late push of step %d reaches server %d", (server.clock + 1, number), True,
                     servers=_with_push(view, index, number))
