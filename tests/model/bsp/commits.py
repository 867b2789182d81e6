"""How a server commits a step, makes a base image, and comes back from its log."""

from explore.model import Violation


def add_steps(view, number):
    model, server = view.model, view.servers[number]
    if not server.up or number == 2 and not view.copied:
        return
    zombie = number == 1 and view.copied
    if server.pending:
        _add_rest(view, number, zombie)
    elif server.gate and not (number == 1 and view.move and view.move.sealed):
        _add_first(view, number, zombie)
    if server.images_left and not server.pending and server.clock > server.image[0]:
        view.add("inst%d base image at clock %d, log truncated", (number, server.clock), True,
                 servers=view.with_server(number, server._replace(
                     image=(server.clock, server.value, server.pre_image), log=(),
                     images_left=server.images_left - 1)))
    if model.trusts_ssd and server.ssd != server.value and not server.pending:
        view.add("inst%d writes dirty rows to the SSD tier", (number,), True,
                 servers=view.with_server(number, server._replace(ssd=server.value)))


def _lanes_held(model, gate):
    """How often each lane's contribution is among the nodes of a gate."""
    counts = [0] * model.lanes
    for node, members in enumerate(model.members):
        if gate >> node & 1:
            for lane in members:
                counts[lane] += 1
    return counts


def _add_first(view, number, zombie):
    """The gate has every lane: the first record goes to the log."""
    model, server = view.model, view.servers[number]
    counts = _lanes_held(model, server.gate)
    if min(counts) < 1:
        return
    step = server.clock + 1
    if max(counts) > 1:
        raise Violation("P2", "inst%d root of step %d counts lanes %s times", number, step, counts)
    if not model.log_first:
        view.add("inst%d applies and acknowledges step %d (not yet durable)", (number, step), zombie,
                 servers=view.with_server(number, server._replace(
                     clock=step, value=_applied(server.value, step), pre_image=server.value,
                     pending=1, gate=0)))
        return
    # With `mindedup` the value may have parts of the step: their records came through a torn tail.
    there = [p for p in range(model.parts)
             if model.torn == "mindedup" and server.value[p][-1:] == (step,)]
    first = [p for p in range(model.parts) if p not in there][0]
    servers = view.with_server(number, server._replace(
        pre_image=None, pending=1 + len(there), log=server.log + ((step, first),)))
    if model.shared_log and zombie:
        target = servers[2]
        servers = servers[:2] + (target._replace(log=target.log + ((step, 0),)),)
    view.add("inst%d logs step %d%s",
             (number, step, " part %d" % first if model.parts > 1 else ""), zombie, servers=servers)


def _add_rest(view, number, zombie):
    """The other records, and then the step is applied and acknowledged."""
    model, server = view.model, view.servers[number]
    step = server.clock + 1
    if not model.log_first:
        view.add("inst%d writes log record %d", (number, server.clock), False,
                 servers=view.with_server(number, server._replace(
                     pending=0, log=server.log + ((server.clock, 0),))))
        return
    if server.pending < model.parts:
        view.add("inst%d logs step %d part %d", (number, step, server.pending), zombie,
                 servers=view.with_server(number, server._replace(
                     pre_image=None, pending=server.pending + 1,
                     log=server.log + ((step, server.pending),))))
        return
    if model.torn == "mindedup":
        value = tuple(p if p[-1:] == (step,) else p + (step,) for p in server.value)
        pre_image = tuple(p[:-1] if p[-1:] == (step,) else p for p in server.value)
    else:
        value, pre_image = _applied(server.value, step), server.value
    if value != model.serial[step]:
        raise Violation("P3", "inst%d after step %d has value %s", number, step, value)
    others = [o.clock for n, o in enumerate(view.servers) if n != number and o.up]
    if (not view.move and not model.memory and not view.generations and
            any(abs(step - clock) > 1 for clock in others)):
        raise Violation("P3", "shards differ by more than one step")
    view.add("inst%d applies and acknowledges step %d", (number, step), zombie,
             servers=view.with_server(number, server._replace(
                 clock=step, value=value, pre_image=pre_image, pending=0, gate=0)))


def _applied(value, step):
    return tuple(part + (step,) for part in value)


def recovered(model, server, seen, who):
    """The server after it has replayed its log onto its base image.

    `seen` is the commit that it must not be below, or None.
    """
    clock, value, pre_image = server.image
    log = server.log
    if model.trusts_ssd:
        value = server.ssd
    if not model.image_pre and not log:
        pre_image = None
    if model.parts == 1:
        for step, _ in log:
            if not model.replay_dedup or step > clock:
                clock, value, pre_image = step, (value[0] + (step,),), value
    else:
        clock, value, pre_image, log = _replayed_parts(model, clock, value, pre_image, log)
    if not model.replay_pre:
        pre_image = None
    if seen is not None and clock < seen and not model.memory:
        raise Violation("P1", "%s recovered clock %d but a worker had seen commit %d",
                        who, clock, seen)
    if model.torn in ("atomic", "max") and value != model.serial[clock]:
        raise Violation("P3", "%s recovered clock %d with value %s", who, clock, value)
    return server._replace(up=1, clock=clock, value=value, pre_image=pre_image, pending=0, gate=0,
                           incarnation=min(server.incarnation + 1, 9), log=log)


def _replayed_parts(model, clock, value, pre_image, log):
    """Replay where a step has several records, of which the last may lack."""
    steps = {}
    for step, part in log:
        steps.setdefault(step, []).append(part)
    kept = []
    for step in sorted(steps):
        parts = steps[step]
        whole = len(set(parts)) == model.parts
        if not whole and model.torn == "atomic":
            continue
        before = value
        changed = list(value)
        for part in parts:
            changed[part] = changed[part] + (step,)
        value = tuple(changed)
        if whole or model.torn == "max":
            clock, pre_image = step, before
        elif model.torn in ("min", "mindedup"):
            pre_image = before
        kept += [(step, part) for part in parts]
    return clock, value, pre_image, tuple(kept)
