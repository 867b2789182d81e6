"""Pulls of lanes and what servers answer. A lane that has both answers computes at once."""

from bsp.state import RIGHT, WRONG, Lane, Reply, fresh_lane
from explore.model import Violation


def add_steps(view, index):
    """All that may happen to the pull of one lane."""
    lane = view.lanes[index]
    for shard in (0, 1):
        if lane.second if shard else lane.first:
            continue
        number = view.route(lane.worker, shard)
        if view.serving[number] and view.may_call(lane.worker, number, lane.zombie):
            _add_answer(view, index, shard, number)
    if index < len(view.replies) and not lane.second:
        _add_parked_answer(view, index)
        _add_reply(view, index)


def _add_answer(view, index, shard, number):
    """A server answers a pull: with weights, or with the step to go to, or not yet."""
    model, lane, server = view.model, view.lanes[index], view.servers[number]
    mark = "z" * lane.zombie
    if lane.step == server.clock + 1:
        weights = server.value
    elif (lane.step == server.clock and not server.pending and server.pre_image is not None
          and model.pre_images):
        weights = server.pre_image
    elif lane.step < server.clock and model.jumps:
        view.add("lane%d%s at step %d told by inst%d: too old, clock %d: goes to step %d",
                 (lane.number, mark, lane.step, number, server.clock, server.clock), lane.zombie,
                 lanes=view.with_lane(index, fresh_lane(lane.number, lane.worker, server.clock,
                                                        lane.zombie)),
                 seen=_seen_by(view, lane, shard, server.clock),
                 replies=view.with_reply(index, None))
        return
    elif model.steps_back and (lane.step > server.clock + 2 or
                               lane.step == server.clock + 2 and not lane.keeps):
        view.add("lane%d at step %d told by inst%d: clock %d: goes back",
                 (lane.number, lane.step, number, server.clock), lane.zombie,
                 lanes=view.with_lane(index, fresh_lane(lane.number, lane.worker,
                                                        server.clock + 1, lane.zombie)))
        return
    else:
        return
    right = weights == model.serial[lane.step - 1]
    if view.replies and shard == 1 and not lane.zombie:
        reply = Reply(lane.step, right, 1 if number == 1 else 2, server.clock)
        if view.replies[index] != reply:
            view.add("inst%d answers Pull(%d) of lane%d (clock %d)",
                     (number, lane.step, lane.number, server.clock),
                     replies=view.with_reply(index, reply))
        return
    _add_answered(view, index, shard, Reply(lane.step, right, 0, server.clock), lane.zombie,
                  view.replies, "lane%d%s gets Pull(%d) from inst%d (clock %d)",
                  (lane.number, mark, lane.step, number, server.clock))


def _add_parked_answer(view, index):
    """The request had been parked at the old owner before the worker knew the new epoch."""
    lane, owner = view.lanes[index], view.servers[1]
    if lane.zombie or view.epochs[lane.worker] != 2 or not owner.up or lane.step != owner.clock + 1:
        return
    reply = Reply(lane.step, owner.value == view.model.serial[lane.step - 1], 1, owner.clock)
    if view.replies[index] != reply:
        view.add("inst1 answers the parked Pull(%d) of lane%d (clock %d)",
                 (lane.step, lane.number, owner.clock), True,
                 replies=view.with_reply(index, reply))


def _add_reply(view, index):
    """A reply on its way arrives; the worker discards one of an older epoch than it knows."""
    lane, reply = view.lanes[index], view.replies[index]
    if not reply:
        return
    gone = view.with_reply(index, None)
    if reply.step == lane.step and (not view.model.discards or
                                    reply.epoch >= view.epochs[lane.worker]):
        _add_answered(view, index, 1, reply, 0, gone,
                      "lane%d receives Pull(%d) reply of epoch %d (clock %d)",
                      (lane.number, lane.step, reply.epoch, reply.clock))
    else:
        view.add("lane%d discards a reply of epoch %d", (lane.number, reply.epoch), replies=gone)


def _add_answered(view, index, shard, reply, is_fault, replies, text, arguments):
    """A lane takes an answer. With both it computes its step, and pulls the next."""
    model, lane = view.model, view.lanes[index]
    answer = RIGHT if reply.right else WRONG
    first, second = (lane.first, answer) if shard else (answer, lane.second)
    ready = first and second if model.waits_for_all else first or second
    late = view.late
    if ready and lane.step <= model.steps_to_train:
        if first != RIGHT or second != RIGHT:
            raise Violation("P3", "lane %d computes step %d from wrong weights", lane.number, lane.step)
        after = Lane(lane.number, lane.worker, lane.step + 1, 0, 0, 1, 0, 0, lane.zombie)
        lanes = view.with_lane(index, after)
        if (model.late or model.zombies) and not (lane.zombie and view.fenced):
            late |= _computed(view, after, lanes)
    else:
        lanes = view.with_lane(index, lane._replace(first=first, second=second))
    view.add(text, arguments, is_fault, lanes=lanes, late=late,
             seen=_seen_by(view, lane, shard, reply.clock), replies=replies)


def _computed(view, lane, lanes):
    """Bits of the nodes that the worker has now computed with this lane's contribution."""
    model = view.model
    ready = {l.number for l in lanes if l.worker == lane.worker and l.step == lane.step and l.keeps
             and l.zombie == lane.zombie}
    generation = view.worker_generation(lane.worker)
    return sum(model.late_bit(lane.step - 1, node, generation) for node in model.usable
               if lane.number in model.members[node] and model.members[node] <= ready)


def _seen_by(view, lane, shard, clock):
    """What a zombie sees in a move counts for nobody."""
    return view.seen if lane.zombie and view.move else view.after_seeing(shard, clock)
