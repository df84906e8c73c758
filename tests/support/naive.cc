#include "support/naive.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace ample::naive {
namespace {

/// Calls term(x_d, z_d, v_d) for the dimensions in use, v holding one value or one for each.
template <class Term>
void for_dimensions(const Dimensions& dims, std::span<const double> v, const Point& x,
                    const Point& z, const Term& term) {
  const auto count = dims.empty() ? static_cast<std::size_t>(x.size()) : dims.size();
  for (std::size_t a = 0; a < count; ++a) {
    const Index d = dims.empty() ? static_cast<Index>(a) : dims[a];
    term(x[d], z[d], v.size() == 1 ? v[0] : v[a]);
  }
}

/// σ² g(s), s = Σ_d (x_d − z_d)²/ℓ_d²; g is given what follows the lengthscales, too.
template <class Leaf, class Profile>
Twin stationary(const Leaf& leaf, std::size_t extra, const Profile& g) {
  const std::size_t n = leaf.lengthscale.values.size();
  return {leaf, 1 + n + extra,
          [n, g, dims = leaf.dims](std::span<const double> p, const Point& x, const Point& z) {
            double s = 0.0;
            for_dimensions(dims, p.subspan(1, n), x, z, [&](double x_d, double z_d, double l) {
              s += (x_d - z_d) * (x_d - z_d) / (l * l);
            });
            return p[0] * g(s, p.subspan(1 + n));
          }};
}

using Rest = std::span<const double>;

}  // namespace

Matrix matrix(const Twin& twin, const Vector& theta, const Matrix& X, const Matrix& Z) {
  const std::span<const double> p(theta.data(), static_cast<std::size_t>(theta.size()));
  Matrix K(X.rows(), Z.rows());
  for (Index i = 0; i < X.rows(); ++i) {
    for (Index j = 0; j < Z.rows(); ++j) K(i, j) = twin.k(p, X.row(i), Z.row(j));
  }
  return K;
}

Vector theta_of(const Kernel& kernel) {
  const std::vector<Parameter> parameters = kernel.parameters();
  Vector theta(static_cast<Index>(parameters.size()));
  for (Index i = 0; i < theta.size(); ++i) theta[i] = parameters[static_cast<std::size_t>(i)].value;
  return theta;
}

Twin twin(const SquaredExponential& leaf) {
  return stationary(leaf, 0, [](double s, Rest) { return std::exp(-s / 2.0); });
}

Twin twin(const Matern12& leaf) {
  return stationary(leaf, 0, [](double s, Rest) { return std::exp(-std::sqrt(s)); });
}

Twin twin(const Matern32& leaf) {
  return stationary(leaf, 0, [](double s, Rest) {
    return (1.0 + std::sqrt(3.0 * s)) * std::exp(-std::sqrt(3.0 * s));
  });
}

Twin twin(const Matern52& leaf) {
  return stationary(leaf, 0, [](double s, Rest) {
    return (1.0 + std::sqrt(5.0 * s) + 5.0 * s / 3.0) * std::exp(-std::sqrt(5.0 * s));
  });
}

Twin twin(const RationalQuadratic& leaf) {
  return stationary(
      leaf, 1, [](double s, Rest rest) { return std::pow(1.0 + s / (2.0 * rest[0]), -rest[0]); });
}

Twin twin(const Periodic& leaf) {
  const std::size_t n = leaf.lengthscale.values.size();
  return {leaf, n + 2,
          [n, dims = leaf.dims](std::span<const double> p, const Point& x, const Point& z) {
            double sum = 0.0;
            for_dimensions(dims, p.subspan(1, n), x, z, [&](double x_d, double z_d, double l) {
              const double sine = std::sin(std::numbers::pi * (x_d - z_d) / p[n + 1]);
              sum += sine * sine / (l * l);
            });
            return p[0] * std::exp(-2.0 * sum);
          }};
}

Twin twin(const Linear& leaf) {
  return {leaf, leaf.variance.values.size(),
          [dims = leaf.dims](std::span<const double> p, const Point& x, const Point& z) {
            double sum = 0.0;
            for_dimensions(dims, p, x, z, [&](double x_d, double z_d, double variance) {
              sum += variance * x_d * z_d;
            });
            return sum;
          }};
}

Twin twin(const Polynomial& leaf) {
  return {leaf, 2,
          [degree = leaf.degree, dims = leaf.dims](std::span<const double> p, const Point& x,
                                                   const Point& z) {
            double dot = 0.0;
            for_dimensions(dims, p.first(1), x, z,
                           [&](double x_d, double z_d, double) { dot += x_d * z_d; });
            double power = 1.0;
            for (int i = 0; i < degree; ++i) power *= p[0] * dot + p[1];
            return power;
          }};
}

Twin twin(const Constant& leaf) {
  return {leaf, 1, [](std::span<const double> p, const Point&, const Point&) { return p[0]; }};
}

/// σ²/π (pq)^{n/2} J_n(θ), cos θ = a/√(pq) (Cho & Saul 2009, equations 3 to 6).
Twin twin(const ArcCosine& leaf) {
  const std::size_t n = leaf.weight_variance.values.size();
  return {leaf, n + 2,
          [n, order = leaf.order, dims = leaf.dims](std::span<const double> parameters,
                                                    const Point& x, const Point& z) {
            double a = parameters[n + 1];
            double p = parameters[n + 1];
            double q = parameters[n + 1];
            for_dimensions(dims, parameters.subspan(1, n), x, z,
                           [&](double x_d, double z_d, double weight) {
                             a += weight * x_d * z_d;
                             p += weight * x_d * x_d;
                             q += weight * z_d * z_d;
                           });
            const double angle = std::acos(std::clamp(a / std::sqrt(p * q), -1.0, 1.0));
            const double sine = std::sin(angle);
            const double cosine = std::cos(angle);
            const double rest = std::numbers::pi - angle;
            const double J = order == 0 ? rest
                             : order == 1
                                 ? sine + rest * cosine
                                 : 3.0 * sine * cosine + rest * (1.0 + 2.0 * cosine * cosine);
            return parameters[0] / std::numbers::pi * std::pow(p * q, 0.5 * order) * J;
          }};
}

Twin operator+(const Twin& f, const Twin& g) {
  return {f.kernel + g.kernel, f.size + g.size,
          [f, g](std::span<const double> p, const Point& x, const Point& z) {
            return f.k(p.first(f.size), x, z) + g.k(p.subspan(f.size), x, z);
          }};
}

Twin operator*(const Twin& f, const Twin& g) {
  return {f.kernel * g.kernel, f.size + g.size,
          [f, g](std::span<const double> p, const Point& x, const Point& z) {
            return f.k(p.first(f.size), x, z) * g.k(p.subspan(f.size), x, z);
          }};
}

Twin operator*(double scale, const Twin& f) {
  return {scale * f.kernel, f.size,
          [f, scale](std::span<const double> p, const Point& x, const Point& z) {
            return scale * f.k(p, x, z);
          }};
}

Twin pow(const Twin& f, int exponent) {
  return {pow(f.kernel, exponent), f.size,
          [f, exponent](std::span<const double> p, const Point& x, const Point& z) {
            return std::pow(f.k(p, x, z), exponent);
          }};
}

const std::vector<std::string>& leaf_names() {
  static const std::vector<std::string> names{
      "se",          "matern12",    "matern32",    "matern52", "rq",      "periodic", "linear",
      "polynomial1", "polynomial2", "polynomial3", "constant", "arccos0", "arccos1",  "arccos2"};
  return names;
}

const std::vector<std::string>& stationary_names() {
  static const std::vector<std::string> names{"se",       "matern12", "matern32",
                                              "matern52", "rq",       "periodic"};
  return names;
}

const std::vector<std::string>& composite_names() {
  static const std::vector<std::string> names{"sum", "product", "scaled", "power", "nested"};
  return names;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names = leaf_names();
  names.insert(names.end(), composite_names().begin(), composite_names().end());
  return names;
}

Positive spread(std::size_t n, double low, double high) {
  std::vector<double> values;
  values.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(low + (high - low) * std::fmod(0.37 + 0.618 * static_cast<double>(i), 1.0));
  }
  return Positive(values);
}

Twin make_twin(const std::string& name, Index D, Layout layout) {
  const Dimensions dims = layout != Layout::subset ? Dimensions{}
                          : D == 1                 ? Dimensions{0}
                          : D <= 3                 ? Dimensions{D - 1, 0}
                                                   : Dimensions{D - 2, 3, D / 2};
  const std::size_t active = dims.empty() ? static_cast<std::size_t>(D) : dims.size();
  const std::size_t n = layout == Layout::isotropic ? 1 : active;
  const double width = std::sqrt(static_cast<double>(active));
  const auto again = [&](const char* part) { return make_twin(part, D, layout); };
  const Positive lengthscale = spread(n, 0.5 * width, 0.9 * width);
  const Positive weight = spread(n, 0.4 / (width * width), 1.2 / (width * width));
  if (name == "se") return twin(SquaredExponential{1.3, lengthscale, dims});
  if (name == "matern12") return twin(Matern12{0.8, lengthscale, dims});
  if (name == "matern32") return twin(Matern32{1.1, lengthscale, dims});
  if (name == "matern52") return twin(Matern52{0.9, lengthscale, dims});
  if (name == "rq") return twin(RationalQuadratic{1.2, lengthscale, 0.7, dims});
  if (name == "periodic") return twin(Periodic{1.4, spread(n, width, 1.5 * width), 2.3, dims});
  if (name == "linear") return twin(Linear{weight, dims});
  if (name.starts_with("polynomial")) {
    return twin(Polynomial{0.7 / (width * width), 0.6, name.back() - '0', dims});
  }
  if (name == "constant") return twin(Constant{1.7});
  if (name.starts_with("arccos")) return twin(ArcCosine{0.9, weight, 0.5, name.back() - '0', dims});
  if (name == "sum") return again("constant") + again("matern52") + again("linear");
  if (name == "product") return again("se") * again("arccos1");
  if (name == "scaled") return 2.5 * again("rq");
  if (name == "power") return pow(again("matern32") + 0.4 * again("constant"), 3);
  if (name == "nested") {
    return (again("se") + 0.5 * pow(again("matern12") + twin(Linear{0.2, {0}}) * again("rq"), 2)) *
               again("periodic") +
           again("constant");
  }
  throw std::invalid_argument("no kernel of the name " + name);
}

QuadMatrix operator*(const QuadMatrix& A, const QuadMatrix& B) {
  QuadMatrix C(A.rows(), B.cols());
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index k = 0; k < A.cols(); ++k) {
      for (Index j = 0; j < B.cols(); ++j) C(i, j) += A(i, k) * B(k, j);
    }
  }
  return C;
}

QuadMatrix add(const QuadMatrix& A, double factor, const QuadMatrix& B) {
  QuadMatrix C = A;
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index j = 0; j < A.cols(); ++j) C(i, j) += factor * B(i, j);
  }
  return C;
}

QuadMatrix operator+(const QuadMatrix& A, const QuadMatrix& B) { return add(A, 1.0, B); }

QuadMatrix operator-(const QuadMatrix& A, const QuadMatrix& B) { return add(A, -1.0, B); }

QuadMatrix stack(const QuadMatrix& A, const QuadMatrix& B) {
  QuadMatrix C(A.rows() + B.rows(), A.cols());
  for (Index j = 0; j < A.cols(); ++j) {
    for (Index i = 0; i < A.rows(); ++i) C(i, j) = A(i, j);
    for (Index i = 0; i < B.rows(); ++i) C(A.rows() + i, j) = B(i, j);
  }
  return C;
}

QuadMatrix block_diagonal(const QuadMatrix& A, const QuadMatrix& B) {
  return stack(stack(A.transpose(), QuadMatrix(B.rows(), A.rows())).transpose(),
               stack(QuadMatrix(A.rows(), B.rows()), B.transpose()).transpose());
}

Inverse invert(QuadMatrix A) {
  const Index n = A.rows();
  Inverse result{QuadMatrix::identity(n), 0};
  const auto size = [](Quad v) { return v < 0 ? -v : v; };
  for (Index k = 0; k < n; ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < n; ++i) {
      if (size(A(i, k)) > size(A(pivot, k))) pivot = i;
    }
    for (Index j = 0; j < n; ++j) {
      std::swap(A(k, j), A(pivot, j));
      std::swap(result.matrix(k, j), result.matrix(pivot, j));
    }
    const Quad p = A(k, k);
    result.log_determinant += std::log(static_cast<long double>(size(p)));
    for (Index j = 0; j < n; ++j) {
      A(k, j) /= p;
      result.matrix(k, j) /= p;
    }
    for (Index i = 0; i < n; ++i) {
      if (i == k) continue;
      const Quad factor = A(i, k);
      if (factor == 0) continue;
      for (Index j = 0; j < n; ++j) {
        A(i, j) -= factor * A(k, j);
        result.matrix(i, j) -= factor * result.matrix(k, j);
      }
    }
  }
  return result;
}

Quad quadratic(const QuadMatrix& x, const QuadMatrix& A) { return (x.transpose() * A * x).trace(); }

Quad log_normal(const QuadMatrix& y, const QuadMatrix& C) {
  const Inverse inverse = invert(C);
  return -0.5 * static_cast<double>(y.rows()) * kLog2Pi - 0.5 * inverse.log_determinant -
         0.5 * quadratic(y, inverse.matrix);
}

double evidence(const Twin& twin, const Vector& theta, double noise_variance, const Batch& batch) {
  const QuadMatrix K_ff = matrix(twin, theta, batch.X, batch.X);
  return static_cast<double>(
      log_normal(batch.y, K_ff + QuadMatrix::identity(K_ff.rows(), noise_variance)));
}

Past::Past(const State& state)
    : Z(state.Z),
      K(QuadMatrix(state.L) * QuadMatrix(state.L).transpose()),
      S(0, 0),
      m(0, 1),
      D(0, 0),
      y(0, 1) {
  const Index M_a = state.size();
  const QuadMatrix L = state.L;
  const QuadMatrix D_w_inv = invert(QuadMatrix::identity(M_a) + QuadMatrix(state.A)).matrix;
  S = L * D_w_inv * L.transpose();
  m = L * D_w_inv * QuadMatrix(state.c);
  const Inverse S_inv = invert(S);
  const Inverse K_inv = invert(K);
  const Inverse D_inv = invert(S_inv.matrix - K_inv.matrix);
  D = D_inv.matrix;
  y = D * S_inv.matrix * m;
  // Δ = −½ log |S_a|/(|K'_aa||D_a|) + M_a/2 log 2π − ½ mᵀS⁻¹m + ½ mᵀS⁻¹ D S⁻¹m
  const QuadMatrix S_inv_m = S_inv.matrix * m;
  delta = -0.5 * (S_inv.log_determinant - K_inv.log_determinant + D_inv.log_determinant) +
          0.5 * static_cast<double>(M_a) * kLog2Pi - 0.5 * quadratic(m, S_inv.matrix) +
          0.5 * quadratic(S_inv_m, D);
}

Covariances::Covariances(const Twin& twin, const Vector& theta, const Past& past, const Matrix& X,
                         const Matrix& Z_b, const Jitter& jitter)
    : K_ff(matrix(twin, theta, X, X)),
      K_aa(QuadMatrix(matrix(twin, theta, past.Z, past.Z)) +
           QuadMatrix::identity(past.Z.rows(), jitter.epsilon)),
      K_bb(QuadMatrix(matrix(twin, theta, Z_b, Z_b)) +
           QuadMatrix::identity(Z_b.rows(), jitter.epsilon)),
      K_fb(matrix(twin, theta, X, Z_b)),
      K_ab(matrix(twin, theta, past.Z, Z_b)) {
  for (Index i = 0; jitter.shared && i < past.Z.rows(); ++i) {
    for (Index j = 0; j < Z_b.rows(); ++j) {
      if (past.Z.row(i) == Z_b.row(j)) K_ab(i, j) += jitter.epsilon;
    }
  }
  K_hb = stack(K_fb, K_ab);
  Q = K_hb * invert(K_bb).matrix * K_hb.transpose();
}

QuadMatrix sigma_y(double noise_variance, Index N, const Past& past) {
  return block_diagonal(QuadMatrix::identity(N, noise_variance), past.D);
}

double online_bound(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                    const Batch& batch, const Matrix& Z_b, const Jitter& jitter) {
  const Index N = batch.X.rows();
  const Index M_a = past.Z.rows();
  const Covariances C(twin, theta, past, batch.X, Z_b, jitter);
  QuadMatrix residual_aa(M_a, M_a);
  for (Index i = 0; i < M_a; ++i) {
    for (Index j = 0; j < M_a; ++j) residual_aa(i, j) = C.K_aa(i, j) - C.Q(N + i, N + j);
  }
  Quad trace_ff = 0;
  for (Index i = 0; i < N; ++i) trace_ff += C.K_ff(i, i) - C.Q(i, i);
  return static_cast<double>(
      log_normal(stack(batch.y, past.y), C.Q + sigma_y(noise_variance, N, past)) + past.delta -
      0.5 * (invert(past.D).matrix * residual_aa).trace() - 0.5 * trace_ff / noise_variance);
}

double optimum_paper(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                     const Batch& batch) {
  const QuadMatrix K_fa = matrix(twin, theta, batch.X, past.Z);
  const QuadMatrix K_ff = matrix(twin, theta, batch.X, batch.X);
  const QuadMatrix top = stack(K_ff, K_fa.transpose()).transpose();  // [K_ff K_fa]
  const QuadMatrix bottom = stack(K_fa, past.K).transpose();         // [K_af K_aa]
  return static_cast<double>(
      log_normal(stack(batch.y, past.y),
                 stack(top, bottom) + sigma_y(noise_variance, batch.X.rows(), past)) +
      past.delta);
}

double optimum_density(const Twin& twin, const Vector& theta, double noise_variance,
                       const Past& past, const Batch& batch) {
  const QuadMatrix P = QuadMatrix(matrix(twin, theta, batch.X, past.Z)) * invert(past.K).matrix;
  const QuadMatrix K_ff = matrix(twin, theta, batch.X, batch.X);
  const QuadMatrix covariance = K_ff - P * (past.K - past.S) * P.transpose();
  return static_cast<double>(
      log_normal(QuadMatrix(batch.y) - P * past.m,
                 covariance + QuadMatrix::identity(K_ff.rows(), noise_variance)));
}

double upper_bound(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                   const Batch& batch, const Matrix& Z_b, const Jitter& jitter, bool tight) {
  const Index N = batch.X.rows();
  const Index M_a = past.Z.rows();
  const Covariances C(twin, theta, past, batch.X, Z_b, jitter);
  const Quad t = C.K_ff.trace() + C.K_aa.trace() - C.Q.trace();
  const QuadMatrix plain = C.Q + sigma_y(noise_variance, N, past);
  QuadMatrix inflated = plain;
  for (Index i = 0; i < (tight ? N : N + M_a); ++i) inflated(i, i) += t;
  return static_cast<double>(
      -0.5 * static_cast<double>(N + M_a) * kLog2Pi - 0.5 * invert(plain).log_determinant -
      0.5 * quadratic(stack(batch.y, past.y), invert(inflated).matrix) + past.delta);
}

}  // namespace ample::naive
