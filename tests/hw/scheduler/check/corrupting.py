"""Tools to corrupt a plan.json: choose an entry to change, or report that the plan has none."""

LISTS = ("steps", "episodes", "streams", "fifos", "transfers", "stages")


class NotHere(Exception):
    """The plan has nothing of the kind to corrupt."""


def pick(rng, entries, condition=lambda entry: True):
    found = [entry for entry in entries if condition(entry)]
    if not found:
        raise NotHere
    return rng.choice(found)


def writes(transfer):
    return transfer["direction"] == "write"


def reads(transfer):
    return transfer["direction"] == "read"


def whole(transfer):
    return transfer["stream"] is None


def streaming(transfer):
    return transfer["stream"] is not None


def makers(plan):
    by_name = {operator["name"]: operator for operator in plan["graph"]["operators"]}
    steps = [by_name[step["operator"]] for step in plan["steps"]]
    return {name: step for step, operator in enumerate(steps) for name in operator["outputs"]}


def change(path, by):
    """Return a corruption that changes a number of the document by a function of it."""

    def corrupt(plan, rng):
        *outer, key = path
        place = plan
        for part in outer:
            place = pick(rng, place[part]) if part in LISTS else place[part]
        place[key] = by(place[key])

    return corrupt


def remove(kind, condition=lambda entry: True):
    def corrupt(plan, rng):
        plan[kind].remove(pick(rng, plan[kind], condition))

    return corrupt


def renumber(plan, kind, index):
    """Let no transfer point past a removed entry."""
    for transfer in plan["transfers"]:
        if transfer[kind] is not None and transfer[kind] > index:
            transfer[kind] -= 1
