"""Steps of the scheduler: the wish to move, the order to seal, the new map, moves that are called off."""

from move.state import (LOST, NEW_MAP, NO_COPY, OLD_MAP, RUNS, SEAL_NOW, TARGET, Copying, Scheduler,
                        Server)


def add_steps(view):
    model, scheduler, target = view.model, view.scheduler, view.servers[TARGET]
    if view.budget.attempts and not scheduler.moving and view.maps[-1] == OLD_MAP:
        view.add("scheduler persists the wish to %s", (model.operation,), True,
                 scheduler=Scheduler(view.maps, 1, 0), budget=view.spent("attempts"))
    if scheduler.moving:
        if not scheduler.seal:
            _add_order(view)
        _add_new_epoch(view)
    if view.budget.target_losses and target.up != LOST and view.maps[-1] == OLD_MAP:
        lost = Server(LOST, target.epoch, 0, 0, 0, 0, 0)
        view.add("the machine of the target is LOST", (), True, budget=view.spent("target_losses"),
                 servers=view.with_server(TARGET, lost),
                 copying=Copying((NO_COPY,) * len(model.sources), view.copying.reported, 0))


def _add_order(view):
    """The sources of a merge seal at one named step (M10)."""
    model = view.model
    if model.operation == "merge" and model.named_step:
        for step in range(model.steps_to_train + 1):
            view.add("scheduler orders SEAL at step %d", (step,),
                     scheduler=Scheduler(view.maps, 1, step + 1))
    else:
        view.add("scheduler orders SEAL", (), scheduler=Scheduler(view.maps, 1, SEAL_NOW))


def _add_new_epoch(view):
    """Exactly one of the new map and the old one is persisted for an epoch (M2, M4, M5)."""
    model, scheduler, reported = view.model, view.scheduler, view.copying.reported
    if reported and (reported == view.epoch or not model.fresh_report):
        view.add("scheduler persists epoch %d: the new map", (view.epoch + 1,),
                 scheduler=Scheduler(view.maps + NEW_MAP, 0, 0))
    missed = 0 < scheduler.seal < SEAL_NOW and any(
        view.servers[source].clock > scheduler.seal - 1 for source in model.sources)
    dead = view.servers[TARGET].up != RUNS or missed
    if dead or view.budget.wrong:
        view.add("scheduler persists epoch %d: the move is off%s",
                 (view.epoch + 1, "" if dead else ", though the target lives"), not dead,
                 scheduler=Scheduler(view.maps + OLD_MAP, 0, 0),
                 budget=view.budget if dead else view.spent("wrong"))
