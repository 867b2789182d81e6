"""Pushes: those of the workers that keep a contribution, and late ones."""

from explore.model import Violation


def take(model, server, step, node, superseded):
    """The server after a push of a step's node reached it."""
    if step <= server.clock and model.old_steps_drop:
        return server
    if step > server.clock + 1:
        if not superseded:
            model.note("push of step > clock+1 reached a live owner")
        return server
    if server.pending:
        return server
    gate = server.gate
    if model.nodes_drop:
        if gate & model.above[node]:
            return server
        if not model.nodes_replace and gate & model.below[node]:
            return server
        gate &= ~model.below[node]
    if step < server.clock + 1:
        raise Violation("P3", "contribution of step %d held for step %d", step, server.clock + 1)
    return server._replace(gate=gate | 1 << node)


def add_pushes(view):
    """Each worker pushes each node that it can form of what its lanes keep."""
    model = view.model
    holders = {}
    for index, lane in enumerate(view.lanes):
        if lane.keeps:
            holders.setdefault((lane.worker, lane.step - 1, lane.zombie), []).append(index)
    for (worker, step, zombie), indices in holders.items():
        kept = {view.lanes[i].number for i in indices}
        formed = [n for n in model.usable if model.members[n] <= kept]
        for node in formed:
            if model.largest_only and any(model.members[node] < model.members[o] for o in formed):
                continue
            senders = [i for i in indices if view.lanes[i].number in model.members[node]]
            for shard in (0, 1):
                number = view.route(worker, shard)
                if view.serving[number] and view.may_call(worker, number, zombie):
                    _add_push(view, (worker, step, zombie), node, senders, shard, number)


def _add_push(view, holder, node, senders, shard, number):
    worker, step, zombie = holder
    model, server = view.model, view.servers[number]
    if model.resend != "free" or not model.keeps:
        _add_push_with_ok(view, holder, node, senders, shard, number)
        return
    after = take(model, server, step, node, view.copied and number == 1)
    if after != server:
        view.add("worker%d%s pushes step %d node %s to inst%d",
                 (worker, "z" * zombie, step, model.nodes[node], number), zombie,
                 servers=view.with_server(number, after))


def _add_push_with_ok(view, holder, node, senders, shard, number):
    """Where an OK ends what a worker sends: it is remembered with the incarnation that gave it."""
    worker, step, zombie = holder
    model, server = view.model, view.servers[number]
    field = "second_ok" if shard else "first_ok"
    given = [getattr(view.lanes[i], field) for i in senders]
    if not any(ok == 0 or model.resend == "inc" and ok != server.incarnation for ok in given):
        return
    after = take(model, server, step, node, view.copied and number == 1)
    if step > server.clock + 1:
        return
    lanes = view.lanes
    for i in senders:
        lane = lanes[i]._replace(**{field: server.incarnation})
        if not model.keeps and lane.first_ok and lane.second_ok:
            lane = lane._replace(keeps=0, first_ok=0, second_ok=0)
        lanes = lanes[:i] + (lane,) + lanes[i + 1:]
    arguments = (worker, step, model.nodes[node], number)
    view.add("worker%d pushes step %d node %s to inst%d, OK", arguments, zombie,
             servers=view.with_server(number, after), lanes=lanes)
    if after != server:
        view.add("worker%d pushes step %d node %s to inst%d, OK lost", arguments, True,
                 servers=view.with_server(number, after))


def add_late_pushes(view):
    """Any contribution ever computed reaches any server that would take it."""
    model = view.model
    if not model.late or not view.late:
        return
    count = len(model.nodes)
    for bit in range(2 * model.steps_to_train * count):
        if not view.late >> bit & 1:
            continue
        generation, rest = divmod(bit, model.steps_to_train * count)
        step, node = rest // count + 1, rest % count
        for number, server in enumerate(view.servers):
            if not server.up or (view.generations and model.generations_checked and
                                 view.server_generation(number) != generation + 1):
                continue
            if number == 2 and (model.server_epoch or not view.serving[2]):
                continue
            after = take(model, server, step, node, view.copied and number == 1)
            if after != server:
                view.add("STALE push step %d node %s reaches inst%d",
                         (step, model.nodes[node], number), True,
                         servers=view.with_server(number, after))
