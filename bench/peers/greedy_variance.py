"""Greedy conditional variance (Burt, Rasmussen & van der Wilk 2020): a pivoted Cholesky factorisation."""

import numpy as np
from scipy.linalg import solve_triangular

ROUNDING = 1e-12  # of the largest prior variance: below it a conditional variance is none


class GreedyVariance:
    """Takes the rows of X with the largest variance given those taken, and given Z to begin with."""

    def __init__(self, kernel, X, Z, jitter):
        self.kernel, self.X, self.jitter = kernel, X, jitter
        prior = kernel(X, full_cov=False).numpy()
        self.V = np.zeros((0, len(X)))
        if len(Z):
            L = np.linalg.cholesky(kernel(Z).numpy() + jitter * np.eye(len(Z)))
            self.V = solve_triangular(L, kernel(Z, X).numpy(), lower=True)
        self.residual = np.maximum(prior - np.sum(self.V**2, axis=0), 0)
        self.least = ROUNDING * prior.max()
        self.taken = []

    def take_next(self):
        """The index of the next row; None when no variance is left."""
        free = self.residual.copy()
        free[self.taken] = -1
        best = int(np.argmax(free))
        if free[best] <= self.least:
            return None
        row = self.kernel(self.X[best : best + 1], self.X).numpy()[0] - self.V[:, best] @ self.V
        row /= np.sqrt(self.residual[best] + self.jitter)
        self.V = np.vstack([self.V, row])
        self.residual = np.maximum(self.residual - row**2, 0)
        self.taken.append(best)
        return best
