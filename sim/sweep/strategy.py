"""The designs of a sweep, batch by batch: the same designs for the same results."""

from collections.abc import Generator, Sequence

from sim.sweep.space import Place, Space

#: Objectives of each design of a batch, the less the better; None for one that cannot be built.
Values = Sequence[tuple[float, ...] | None]
Batches = Generator[list[Place], Values, None]


def batches(space: Space) -> Batches:
    """Return batches of designs; each is answered with the objectives of its designs before the next.

    Batches depend on the spec and the answers alone. A resumed sweep asks for the same designs, and so do
    processes that share a database.

    Raises `InputError` when no design keeps the constraints.
    """
    strategy, seed = space.spec.strategy, space.spec.seed
    if strategy.name in ("nsga2", "tpe"):
        yield from _suggested(space)
    elif strategy.name == "random":
        yield space.drawn(strategy.designs, seed)
    else:
        found = space.grid()
        yield found[: strategy.designs or len(found)]


def _suggested(space: Space) -> Batches:
    """Ask Optuna: NSGA-II (Deb et al., 2002) or tree-structured Parzen estimators (Bergstra et al., 2011)."""
    import optuna

    strategy, seed = space.spec.strategy, space.spec.seed
    space.drawn(1, seed)  # raises when there is none
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler: optuna.samplers.BaseSampler
    if strategy.name == "nsga2":
        sampler = optuna.samplers.NSGAIISampler(population_size=strategy.batch, seed=seed)
    else:
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=strategy.batch)
    study = optuna.create_study(directions=["minimize"] * len(space.spec.objectives), sampler=sampler)
    axes = {
        name: optuna.distributions.IntDistribution(0, len(values) - 1)
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        else optuna.distributions.CategoricalDistribution(range(len(values)))
        for name, values in space.axes.items()
    }
    asked = 0
    while asked < strategy.designs:
        trials = [study.ask(axes) for _ in range(min(strategy.batch, strategy.designs - asked))]
        asked += len(trials)
        places = [tuple(trial.params[name] for name in axes) for trial in trials]
        allowed = [space.allowed(place) for place in places]
        answers = iter((yield [place for place, good in zip(places, allowed, strict=True) if good]))
        for trial, good in zip(trials, allowed, strict=True):
            values = next(answers) if good else None
            state = optuna.trial.TrialState.FAIL if values is None else optuna.trial.TrialState.COMPLETE
            study.tell(trial, values, state=state)
