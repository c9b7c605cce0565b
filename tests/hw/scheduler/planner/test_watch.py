"""Progress lines of the planner, and its early end."""

from hw.scheduler.planner.watch import COMPILING, Watch


def test_only_plans_with_addresses_are_the_best_so_far():
    told = []
    watch = Watch(told.append)
    watch.stage("order")
    watch.best(100, 20, placed=False)
    watch.best(300, 20)
    watch.best(400, 20)
    watch.best(350, 20, placed=False)
    watch.best(200, 20)
    assert told == [
        "order",
        "order; best order so far, before addresses, 100 avoidable bytes, bound 20",
        "order; best so far 300 avoidable bytes, bound 20",
        "order; best so far 200 avoidable bytes, bound 20",
    ]


def test_compiling_is_said_and_then_the_stage_again():
    told = []
    watch = Watch(told.append)
    watch.stage("order")
    watch.compiling(True)
    watch.compiling(False)
    assert told == ["order", COMPILING, "order"]
