"""A stopping rule of one's own."""

from collections.abc import Callable

from ._ample import Greedy, Selection, SelectionProblem


class GreedyUntil:
    """Adds inducing points, the most uncertain first, until ``stop`` says that they are enough.

    ``stop(M, lower_bound, optimum, noise_bound)`` is asked after each added point, and before the
    first if there are points from earlier batches. ``optimum`` is None where it cannot be computed.

    VIPS itself is such a rule:

    >>> def vips(M, lower_bound, optimum, noise_bound):
    ...     return optimum - lower_bound <= 0.035 * abs(optimum - noise_bound)
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> own = ample.ContinualGP(selection=ample.GreedyUntil(vips)).observe(X, np.sin(X[:, 0]))
    >>> built_in = ample.ContinualGP(selection=ample.Vips()).observe(X, np.sin(X[:, 0]))
    >>> own.inducing == built_in.inducing
    True
    """

    def __init__(
        self, stop: Callable[[int, float, float | None, float], bool], name: str = "greedy-until"
    ) -> None:
        self.stop = stop
        self.name = name

    def select(self, problem: SelectionProblem) -> Selection:
        greedy = Greedy(problem)
        optimum, noise_bound = problem.optimum(), problem.noise_bound()
        exhausted = False
        # A model needs one point to remember anything at all.
        while greedy.size == 0 or not self.stop(
            greedy.size, greedy.lower_bound, optimum, noise_bound
        ):
            if not greedy.take_next():
                exhausted = True
                break
        selection = greedy.selection(exhausted)
        selection.optimum = optimum
        return selection

    def __repr__(self) -> str:
        return f"GreedyUntil({getattr(self.stop, '__name__', self.stop)!s}, name={self.name!r})"
