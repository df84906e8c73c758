"""Online sparse GP regression (Bui, Nguyen & Turner 2017) as a GPflow model.

The past is remembered by inducing inputs Z_a and, in the notation of the paper,

    D_a^-1 = S_a^-1 - K'_aa^-1,   S_a^-1 m_a,   and   -log|S_a| + log|K'_aa| - m_a' S_a^-1 m_a.

The inducing inputs of the new batch begin with Z_a, as VIPS has them. The covariance of a and b is
then a part of that of b, and the term tr[D_a^-1 (K_aa - Q_aa)] of the bound is zero.
"""

import math
from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

JITTER = 1e-8  # relative to the prior variance, as in Ample
GPFLOW_JITTER = 1e-6  # GPflow's default, absolute


class Past(NamedTuple):
    Z: np.ndarray  # [M,D]
    precision: np.ndarray  # [M,M] D_a^-1
    evidence: np.ndarray  # [M,1] S_a^-1 m_a
    constant: float  # half of the sum of the last three terms above

    @staticmethod
    def empty(dimension):
        return Past(np.zeros((0, dimension)), np.zeros((0, 0)), np.zeros((0, 1)), 0.0)


class Common(NamedTuple):
    L: tf.Tensor  # [M,M] Cholesky factor of K_bb
    V: tf.Tensor  # [M,N] L^-1 K_bf
    A: tf.Tensor  # [M,M] L^-1 (K_bf K_fb / noise + K_ba D_a^-1 K_ab) L^-T
    c: tf.Tensor  # [M,1] L^-1 (K_bf y / noise + K_ba S_a^-1 m_a)
    L_D: tf.Tensor  # [M,M] Cholesky factor of I + A
    w: tf.Tensor  # [M,1] L_D^-1 c


def identity_like(matrix):
    return tf.eye(tf.shape(matrix)[0], dtype=matrix.dtype)


class OnlineSGPR(gpflow.models.GPModel, InternalDataTrainingLossMixin):
    """Data, past and Z are variables of free shape, so that one graph serves the whole stream."""

    def __init__(self, kernel, likelihood, dimension, gpflow_jitter=False):
        super().__init__(kernel, likelihood, num_latent_gps=1)

        def variable(*shape):
            start = np.zeros([n or 0 for n in shape])
            return tf.Variable(start, shape=tf.TensorShape(shape), trainable=False, dtype=tf.float64)

        self.data = variable(None, dimension), variable(None, 1)
        self.Z = variable(None, dimension)
        self.precision = variable(None, None)
        self.evidence = variable(None, 1)
        self.constant = variable()
        self.jitter_is_relative = not gpflow_jitter
        self.first_jitter = GPFLOW_JITTER if gpflow_jitter else JITTER
        self.jitter = tf.Variable(self.first_jitter, trainable=False, dtype=tf.float64)

    def start_batch(self, past, X, y):
        """The past and the new data; Z is that of the past."""
        self.data[0].assign(X)
        self.data[1].assign(y[:, None])
        self.Z.assign(past.Z)
        self.precision.assign(past.precision)
        self.evidence.assign(past.evidence)
        self.constant.assign(past.constant)
        self.jitter.assign(self.first_jitter)

    def jitter_variance(self):
        return self.jitter * self.kernel.variance if self.jitter_is_relative else self.jitter

    def prior_factor(self):
        K_bb = self.kernel(self.Z)
        return tf.linalg.cholesky(K_bb + self.jitter_variance() * identity_like(K_bb))

    def with_past(self, L, A, c):
        """Adds what is remembered to A and c, and factorises. Z begins with Z_a: K_ab L^-T = L_a."""
        L_a = L[: tf.shape(self.precision)[0]]
        A += tf.matmul(L_a, tf.matmul(self.precision, L_a), transpose_a=True)
        c += tf.matmul(L_a, self.evidence, transpose_a=True)
        L_D = tf.linalg.cholesky(A + identity_like(A))
        return A, c, L_D, tf.linalg.triangular_solve(L_D, c)

    def common(self):
        X, y = self.data
        L = self.prior_factor()
        V = tf.linalg.triangular_solve(L, self.kernel(self.Z, X))
        A = tf.matmul(V, V, transpose_b=True) / self.likelihood.variance
        c = tf.matmul(V, y) / self.likelihood.variance
        return Common(L, V, *self.with_past(L, A, c))

    def elbo(self):
        X, y = self.data
        noise = self.likelihood.variance
        k = self.common()
        residual = tf.reduce_sum(self.kernel(X, full_cov=False)) - tf.reduce_sum(k.V**2)
        return (
            -0.5 * tf.cast(tf.shape(y)[0], y.dtype) * tf.math.log(2 * math.pi * noise)
            - 0.5 * (tf.reduce_sum(y**2) + residual) / noise
            - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(k.L_D)))
            + 0.5 * tf.reduce_sum(k.w**2)
            + self.constant
        )

    def maximum_log_likelihood_objective(self):
        return self.elbo()

    def optimum(self):
        """The best value of the bound, with Z = Z_a: the log predictive density of the batch."""
        X, y = self.data
        L = self.prior_factor()
        _, _, L_D, w = self.with_past(L, tf.zeros_like(L), tf.zeros([tf.shape(L)[0], 1], L.dtype))
        V = tf.linalg.triangular_solve(L, self.kernel(self.Z, X))
        U = tf.linalg.triangular_solve(L_D, V)
        mean = tf.matmul(U, w, transpose_a=True)
        covariance = self.kernel(X) - tf.matmul(V, V, transpose_a=True) + tf.matmul(U, U, transpose_a=True)
        R = tf.linalg.cholesky(covariance + self.likelihood.variance * identity_like(covariance))
        z = tf.linalg.triangular_solve(R, y - mean)
        return (
            -0.5 * tf.cast(tf.shape(y)[0], y.dtype) * math.log(2 * math.pi)
            - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(R)))
            - 0.5 * tf.reduce_sum(z**2)
        )

    def absorb(self):
        """What is remembered of past and new data. D_b^-1 comes from A, without the subtraction."""
        k = self.common()
        half = tf.linalg.triangular_solve(k.L, k.A, adjoint=True)  # L^-T A
        precision = tf.linalg.triangular_solve(k.L, tf.transpose(half), adjoint=True)
        evidence = tf.linalg.triangular_solve(k.L, k.c, adjoint=True)
        constant = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(k.L_D))) - 0.5 * tf.reduce_sum(k.w**2)
        return Past(tf.identity(self.Z), 0.5 * (precision + tf.transpose(precision)), evidence, constant)

    def predict_f(self, Xnew, full_cov=False, full_output_cov=False):
        k = self.common()
        V = tf.linalg.triangular_solve(k.L, self.kernel(self.Z, Xnew))
        U = tf.linalg.triangular_solve(k.L_D, V)
        mean = tf.matmul(U, k.w, transpose_a=True)
        variance = self.kernel(Xnew, full_cov=False) - tf.reduce_sum(V**2, 0) + tf.reduce_sum(U**2, 0)
        return mean, variance[:, None]
