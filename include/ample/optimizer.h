// Minimisation of a smooth function inside a box, for log-hyperparameters and inducing inputs:
//
//   min f(x)   subject to   lower ≤ x ≤ upper.
//
// Projected L-BFGS (Bertsekas 1982, two-metric projection; Nocedal & Wright 2006, algorithm 7.4):
// variables that the gradient holds at a bound go there, the two-loop recursion acts on the others,
// and a line search follows the path clamp(x + t d). Every accepted point is lower than the one
// before, so the result is never worse than the start. A trial that cannot be evaluated is data
// that the search backs away from. O(n · memory) for each evaluation besides the function itself.
//
//   Objective f = [](const Vector& x, double& value, Vector& gradient) {
//     value = (x.array() - 1).square().sum();
//     gradient = 2 * (x.array() - 1);
//     return true;
//   };
//   MinimizeSummary s = minimize(f, Vector::Zero(3), Vector::Zero(3), Vector::Constant(3, 0.5));
//   // s.x = [0.5, 0.5, 0.5], s.value = 0.75, s.termination = Termination::gradient
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ample/types.h"

namespace ample {

/// Computes value and gradient at x; `gradient` arrives with the size of x. Returning false, or a
/// value or gradient that is not finite, is a failed evaluation. Exceptions pass through
/// `minimize`.
using Objective = std::function<bool(const Vector& x, double& value, Vector& gradient)>;

/// When a run ends, and how far a step may go.
struct MinimizeOptions {
  /// A hyperparameter fit takes 20 to 100 evaluations; this only ends a runaway.
  int max_evaluations = 1000;

  /// On the max-norm of the projected gradient, clamp(x - gradient) - x. SciPy's default.
  double gradient_tolerance = 1e-5;

  /// On the decrease of one step over max(|f|, 1). SciPy's default, 1e7 · epsilon.
  double relative_value_tolerance = 2.2e-9;

  /// On the decrease of each of two steps in a row; 0 turns it off. For a caller to whom a change
  /// of f below some amount cannot matter. Two steps, for one may be short by chance.
  ///
  /// By either tolerance a run ends only after a last trial with long steps in the directions it
  /// knows nothing of: f may be flat there for a while only, as in the logarithm of a tiny noise
  /// variance.
  double absolute_value_tolerance = 0;

  /// Pairs (s, y) kept. SciPy's default; more than most models have hyperparameters.
  int memory = 10;

  /// Cap on the max-norm of a step. In logarithms a factor of 150: far enough to cross any sensible
  /// range in a few steps, near enough that a trial stays in reach of the numbers it came from.
  double max_step = 5;

  /// Throws std::invalid_argument for a setting out of range; `where` begins the message.
  void validate(std::string_view where) const;
};

/// Asked before each evaluation but the first; true ends the run with the best point so far. Empty:
/// never asked.
using ShouldStop = std::function<bool()>;

/// What a run learnt of the inverse Hessian: steps s and changes of the gradient y, oldest first.
/// Handed to the next, similar problem it saves the evaluations that would learn it again. Steps
/// that changed f by no more than the relative tolerance are not handed on: what they did to the
/// gradient may be rounding. It is used only if every pair has the dimension of the problem, and is
/// otherwise dropped. Should the first trial along its direction not decrease f sufficiently, it is
/// dropped too, and the run begins with scaled steepest descent: a wrong curvature costs one
/// evaluation at the start.
struct Curvature {
  struct Pair {
    Vector s, y;
  };
  std::vector<Pair> pairs;
};

/// Why a run ended.
enum class Termination {
  gradient,         // the projected gradient is within its tolerance
  value_tolerance,  // a full quasi-Newton step decreased f by less than a value tolerance
  max_evaluations,  // the budget is spent
  no_progress,      // not even steepest descent decreases f; usual near rounding error
  failed_start,     // the starting point cannot be evaluated
  interrupted,      // the caller said so
};

std::string_view to_string(Termination termination);

/// How a run went.
struct MinimizeSummary {
  Termination termination = Termination::failed_start;
  std::string message;       // one line for a person
  Vector x;                  // inside the bounds, always
  double value = 0;          // f(x); 0 if not usable
  double initial_value = 0;  // f at the clamped start; value ≤ initial_value
  double gradient_norm = 0;  // max-norm of the projected gradient at x
  int iterations = 0;        // accepted steps
  int evaluations = 0;       // calls of the objective, failed ones included
  int failed_evaluations = 0;

  /// x has a finite value that is no worse than the start's.
  bool usable() const { return termination != Termination::failed_start; }
};

/// Starts at x0 clamped to the bounds, which may be infinite, or equal to hold a variable fixed.
/// `curvature`, if given, is where the run's own curvature is taken from and left in.
MinimizeSummary minimize(const Objective& objective, const Vector& x0, const Vector& lower,
                         const Vector& upper, const MinimizeOptions& options = {},
                         Curvature* curvature = nullptr, const ShouldStop& should_stop = {});

}  // namespace ample
