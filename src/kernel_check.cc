#include "ample/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

constexpr double kStep = 0.02;  // the longest of nine, each half of the one before

/// Weights that favour no entry, the same in every run.
Matrix weights(Index rows, Index cols) {
  return Matrix::NullaryExpr(rows, cols, [](Index i, Index j) {
    return std::sin(1.0 + 2.3 * static_cast<double>(i) + 1.7 * static_cast<double>(j));
  });
}

/// df/du by Richardson extrapolation over halved steps (Ridders 1982), and its own error.
struct Slope {
  double value = 0.0;
  double error = std::numeric_limits<double>::infinity();
};
Slope slope(const std::function<double(double)>& f, double u, double h) {
  constexpr int kLevels = 9;
  Slope best;
  std::vector<double> previous;
  for (int level = 0; level < kLevels; ++level, h /= 2.0) {
    const double right = u + h;
    const double left = u - h;
    std::vector<double> row{(f(right) - f(left)) / (right - left)};
    double power = 4.0;
    for (std::size_t k = 0; k < previous.size(); ++k, power *= 4.0) {
      row.push_back((power * row[k] - previous[k]) / (power - 1.0));
      const double error =
          std::max(std::abs(row[k + 1] - row[k]), std::abs(row[k + 1] - previous[k]));
      if (error < best.error) best = {row[k + 1], error};
    }
    previous = std::move(row);
  }
  return best;
}

class Checker {
 public:
  Checker(const Kernel& kernel, const MatrixRef& X, const MatrixRef& Z, double tolerance)
      : kernel_(kernel),
        parameters_(kernel.parameters()),
        theta_(static_cast<Index>(parameters_.size())),
        X_(X),
        Z_(Z),
        tolerance_(tolerance) {
    for (Index p = 0; p < theta_.size(); ++p) {
      theta_[p] = parameters_[static_cast<std::size_t>(p)].value;
    }
  }

  std::vector<std::string> run() {
    check_values();
    // Derivatives of what is not finite say nothing.
    if (faults_.empty()) {
      check_pull_back();
      check_pull_back_lower();
      check_pull_back_diagonal();
    }
    check_text();
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  /// One fault at most for each law: the first entry that breaks it.
  void compare(std::string_view law, const MatrixRef& got, const MatrixRef& expected) {
    for (Index j = 0; j < got.cols(); ++j) {
      for (Index i = 0; i < got.rows(); ++i) {
        const double error = std::abs(got(i, j) - expected(i, j));
        if (error <= tolerance_ * std::max(1.0, std::abs(expected(i, j)))) continue;
        return fault("{}: got {} in row {}, column {}, expected {}", law, got(i, j), i, j,
                     expected(i, j));
      }
    }
  }

  void check_values() {
    const Matrix K = kernel_(X_, Z_);
    const Matrix K_xx = kernel_(X_, X_);
    if (!K.allFinite() || !K_xx.allFinite()) return fault("evaluate: a value is not finite");
    compare("evaluate: k(x, z) must be k(z, x)", K, kernel_(Z_, X_).transpose());
    compare("diagonal: must be that of the matrix", kernel_.diagonal(X_), K_xx.diagonal());
    Matrix parts(K.rows(), K.cols());
    for (Index i = 0; i < K.rows(); ++i) {
      for (Index j = 0; j < K.cols(); ++j) parts.block(i, j, 1, 1) = kernel_(X_.row(i), Z_.row(j));
    }
    compare("evaluate: an entry must depend on its own two points alone", K, parts);
    Matrix factor = K_xx;
    factor.diagonal().array() += tolerance_ * K_xx.diagonal().mean();
    if (X_.rows() > 0 && !cholesky(factor)) fault("evaluate: K(X, X) is not positive semidefinite");
  }

  void check_pull_back() {
    const Matrix K_bar = weights(X_.rows(), Z_.rows());
    Vector theta = Vector::Ones(theta_.size());
    Matrix X_bar = Matrix::Ones(X_.rows(), X_.cols());
    Matrix Z_bar = Matrix::Ones(Z_.rows(), Z_.cols());
    kernel_.pull_back(X_, Z_, K_bar, {.theta = &theta, .X = &X_bar, .Z = &Z_bar});
    const auto F = [&](const Kernel& kernel, const Matrix& X, const Matrix& Z) {
      return kernel(X, Z).cwiseProduct(K_bar).sum();
    };
    check_theta("pull_back", theta, [&](const Kernel& kernel) { return F(kernel, X_, Z_); });
    check_points("pull_back", "X", X_bar, X_, [&](const Matrix& X) { return F(kernel_, X, Z_); });
    check_points("pull_back", "Z", Z_bar, Z_, [&](const Matrix& Z) { return F(kernel_, X_, Z); });
    Vector alone = Vector::Ones(theta_.size());
    kernel_.pull_back(X_, Z_, K_bar, {.theta = &alone});
    compare("pull_back: by the parameters alone, as with the points", alone, theta);

    // In a sum the second finds there what the first has left.
    Matrix X_twice = Matrix::Zero(X_.rows(), X_.cols());
    Matrix Z_twice = Matrix::Zero(Z_.rows(), Z_.cols());
    (kernel_ + kernel_).pull_back(X_, Z_, K_bar, {.X = &X_twice, .Z = &Z_twice});
    compare("pull_back: must add to what X holds", X_twice.array() / 2.0 + 1.0, X_bar);
    compare("pull_back: must add to what Z holds", Z_twice.array() / 2.0 + 1.0, Z_bar);
  }

  void check_pull_back_lower() {
    const Matrix half = weights(X_.rows(), X_.rows());
    const Matrix K_bar = half + half.transpose();
    Vector theta = Vector::Zero(theta_.size());
    Matrix X_bar = Matrix::Zero(X_.rows(), X_.cols());
    Vector theta_whole = theta;
    Matrix rows_bar = X_bar;
    Matrix cols_bar = X_bar;
    kernel_.pull_back_lower(X_, K_bar, {.theta = &theta, .X = &X_bar});
    kernel_.pull_back(X_, X_, K_bar, {.theta = &theta_whole, .X = &rows_bar, .Z = &cols_bar});
    compare("pull_back with Z = X: by the parameters, of one triangle as of both", theta,
            theta_whole);
    compare("pull_back with Z = X: by the points, of one triangle as of both", X_bar,
            rows_bar + cols_bar);
  }

  void check_pull_back_diagonal() {
    const Vector k_bar = weights(X_.rows(), 1);
    Vector theta = Vector::Ones(theta_.size());
    Matrix X_bar = Matrix::Ones(X_.rows(), X_.cols());
    kernel_.pull_back_diagonal(X_, k_bar, {.theta = &theta, .X = &X_bar});
    const auto F = [&](const Kernel& kernel, const Matrix& X) {
      return kernel.diagonal(X).dot(k_bar);
    };
    check_theta("pull_back_diagonal", theta, [&](const Kernel& kernel) { return F(kernel, X_); });
    check_points("pull_back_diagonal", "X", X_bar, X_,
                 [&](const Matrix& X) { return F(kernel_, X); });
  }

  /// `adjoint` began at 1, so that one is left when the derivative is taken off.
  void check_slope(std::string_view where, std::string_view by, double adjoint,
                   const Slope& expected) {
    if (!(expected.error <= 1e-4 * std::max(1.0, std::abs(expected.value)))) {
      return fault("{}: the derivative by {} cannot be checked, k is not smooth enough there",
                   where, by);
    }
    const double got = adjoint - 1.0;
    const double allowed = tolerance_ * std::max(1.0, std::abs(expected.value)) + expected.error;
    if (std::abs(got - expected.value) <= allowed) return;
    fault("{}: adds {} to the derivative by {}, but differences give {}", where, got, by,
          expected.value);
  }

  void check_theta(std::string_view where, const Vector& adjoint,
                   const std::function<double(const Kernel&)>& F) {
    for (Index p = 0; p < theta_.size(); ++p) {
      const Parameter& parameter = parameters_[static_cast<std::size_t>(p)];
      // By the logarithm, so that a step of one size suits every unit, and within the bounds.
      const double room =
          std::log(std::min(parameter.value / parameter.lower, parameter.upper / parameter.value));
      const double h = std::min(kStep, 0.9 * room);
      if (h < 1e-3) {
        fault("{}: the derivative by {} cannot be checked, its value is at a bound", where,
              parameter.name);
        continue;
      }
      const auto at = [&](double log_value) {
        Vector theta = theta_;
        theta[p] = std::exp(log_value);
        return F(kernel_.with_values(theta));
      };
      Slope by_log = slope(at, std::log(parameter.value), h);
      by_log.value /= parameter.value;
      by_log.error /= parameter.value;
      check_slope(where, parameter.name, adjoint[p], by_log);
    }
  }

  void check_points(std::string_view where, std::string_view name, const Matrix& adjoint,
                    const MatrixRef& points, const std::function<double(const Matrix&)>& F) {
    Matrix moved = points;
    for (Index i = 0; i < points.rows(); ++i) {
      for (Index d = 0; d < points.cols(); ++d) {
        const auto at = [&](double coordinate) {
          moved(i, d) = coordinate;
          return F(moved);
        };
        const Slope expected =
            slope(at, points(i, d), kStep * std::max(1.0, std::abs(points(i, d))));
        moved(i, d) = points(i, d);
        check_slope(where, fmt::format("{}({}, {})", name, i, d), adjoint(i, d), expected);
      }
    }
  }

  void check_text() {
    try {
      if (!(Kernel::parse(kernel_.to_string()) == kernel_)) {
        fault("to_string: {} does not read back to an equal kernel", kernel_.to_string());
      }
    } catch (const std::exception& error) {
      fault("to_string: {} cannot be read: {}", kernel_.to_string(), error.what());
    }
  }

  const Kernel& kernel_;
  std::vector<Parameter> parameters_;
  Vector theta_;
  MatrixRef X_;
  MatrixRef Z_;
  double tolerance_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> kernel_faults(const Kernel& kernel, const MatrixRef& X, const MatrixRef& Z,
                                       double tolerance) {
  check_columns("kernel_faults", "Z", Z.cols(), X.cols(), "as X");
  check_positive("kernel_faults", "tolerance", tolerance);
  kernel.check_dimension(X.cols());
  return Checker(kernel, X, Z, tolerance).run();
}

}  // namespace ample
