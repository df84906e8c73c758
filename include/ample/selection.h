// Choosing inducing inputs for a new batch: where, and above all how many.
//
// Every method is run at the hyperparameters of the past, θ_old, and returns Z_b; θ is then fitted
// with Z_b in place. Any type with select() and name() is a method; to write your own:
//
//   struct EveryTenth {
//     Selection select(const SelectionProblem& p) const { … }
//     std::string name() const { return "every-tenth"; }
//   };
//   options.selection = EveryTenth{};
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ample/bound.h"
#include "ample/optimum.h"
#include "ample/sites.h"
#include "ample/state.h"
#include "ample/target_statistics.h"
#include "ample/types.h"

namespace ample {

/// What a method is given.
struct SelectionProblem {
  const State& old;                 // the model before this batch, at θ_old
  MatrixRef X;                      // [N,D] the batch
  Sites sites;                      // its targets and their weights
  const TargetStatistics& targets;  // mean and variance of all targets, this batch's included
  std::uint64_t seed;               // for methods that draw random numbers
  /// Whether the model is pruned to Selection::most points once it has learnt the batch. A method
  /// that is at its cap may then take some more, and the cheapest of all make room.
  bool pruned_after = false;

  /// The most points that a method with this cap may return: an eighth more, or eight, if the model
  /// is pruned after the batch.
  [[nodiscard]] Index limit(Index cap) const;
};

/// Why a method stopped where it did.
enum class SelectionStop {
  threshold,     // its own criterion was met
  pool_used_up,  // every candidate was taken
  no_variance,   // what is left is determined by what was taken, to rounding
  jitter,        // jitter alone uses up too much of α: more points cannot close the gap
  rounding,      // the bound has no digits left to measure the gap by
  cap,           // the user's limit on M was reached; points may have gone for new ones
  size,          // a method of fixed size has that size
  warm_up,       // none yet: rows are held until there are enough to begin
};
std::string_view to_string(SelectionStop stop);

/// What a method returns. Values in nats are there where the method computes them.
struct Selection {
  Matrix Z;           // [M,D]
  Index added = 0;    // points of Z that come from X
  Index removed = 0;  // points of Z_old that are not in Z
  SelectionStop stop = SelectionStop::threshold;
  Index most = std::numeric_limits<Index>::max();  // points that the method's cap allows
  bool moving = false;                // Z is only a start: it is to be fitted together with θ
  std::optional<double> optimum;      // L*, or the upper bound on it that was used
  std::optional<double> lower_bound;  // L̂(Z) at θ_old
  std::optional<double> noise_bound;  // L_noise
  std::optional<double> threshold;    // α
  std::optional<PredictiveDensity> density;  // of the batch under the old model
  /// The bound at θ_old and Z, if the method has it: the fit then begins there instead of
  /// factorising anew. Only where the old points are the first rows of Z.
  std::optional<BoundFactors> factors;

  /// Notes the method's cap, and that it was reached if Z is larger.
  void keep_to(Index cap);
};

using SelectionSettings = std::map<std::string, double>;

class SelectionMethod;

/// What a SelectionMethod is made from; of another one it is a copy.
template <class Method>
concept NotYetASelectionMethod = !std::same_as<std::remove_cvref_t<Method>, SelectionMethod>;

/// A selection method as a value: holds whatever it was made from.
class SelectionMethod {
 public:
  template <NotYetASelectionMethod Method>
  SelectionMethod(Method method)  // NOLINT(*-explicit-*): a method is written as its struct
      : self_(std::make_shared<Model<Method>>(std::move(method))) {}

  [[nodiscard]] Selection select(const SelectionProblem& problem) const {
    return self_->select(problem);
  }
  /// Throws std::invalid_argument for a setting out of range; of a method without a validate() of
  /// its own nothing is checked.
  void validate() const { self_->validate(); }
  [[nodiscard]] std::string name() const { return self_->name(); }
  /// The numbers it takes to make the same method again with make_selection(); empty for a method
  /// without a settings() of its own.
  [[nodiscard]] SelectionSettings settings() const { return self_->settings(); }
  /// The most points that it allows, by its settings; kNoCap if they name no limit.
  [[nodiscard]] Index most_points() const;

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual void validate() const = 0;
    [[nodiscard]] virtual Selection select(const SelectionProblem& problem) const = 0;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual SelectionSettings settings() const = 0;
  };
  template <class Method>
  struct Model final : Concept {
    explicit Model(Method m) : method(std::move(m)) {}
    [[nodiscard]] Selection select(const SelectionProblem& problem) const override {
      return method.select(problem);
    }
    void validate() const override {
      if constexpr (requires { method.validate(); }) method.validate();
    }
    [[nodiscard]] std::string name() const override { return method.name(); }
    [[nodiscard]] SelectionSettings settings() const override {
      if constexpr (requires { method.settings(); }) return method.settings();
      return {};
    }
    Method method;
  };
  std::shared_ptr<const Concept> self_;
};

/// L_noise = Σ_n log N(y_n; μ̂, σ̂²) of a batch, with the running mean and variance of all targets.
[[nodiscard]] double noise_bound(const SelectionProblem& problem);

/// ε: by how much rounding may change L*, L̂ and their difference at θ_old, in nats. Below −ε a gap
/// says nothing, and within α it is proof only if ε is too.
[[nodiscard]] double rounding_error(const SelectionProblem& problem);

/// No limit on the number of inducing points.
inline constexpr Index kNoCap = std::numeric_limits<Index>::max();

/// Vegas Inducing Point Selection: a point at a time, until the bound is within α of its optimum,
///   L* − L̂ ≤ α = max(δ |L* − L_noise|, floor · N).
/// At θ = θ_old this guarantees KL[q_n ‖ q*_n] ≤ α. Incremental (§6): O(N M + M²) a point.
///
/// On data almost without noise the jitter of the inducing variables alone, J = L* − L*_ε with
/// every point of the batch (9′), may come near to a small α, or exceed it. If it takes more than
/// a quarter of α, a gap of min(α + J, 4J) is enough (SelectionStop::jitter).
struct Vips {
  /// From where: the batch alone, the old points staying (the paper's choice); or the old points
  /// and the batch together, so that old points that no longer help are dropped.
  enum class Pool { batch, old_and_batch };
  /// What stands for the optimum: L* itself, O(N³); the upper bound Û′ on a geometric schedule of
  /// M; or whichever is cheaper for the batch at hand.
  enum class Reference { automatic, optimum, upper_bound };
  /// Which point next: the most uncertain, whatever its target says (the paper's choice); or the
  /// one that raises the bound most (20), which needs fewer points for the same α.
  enum class Choose { variance, gain };

  /// 0.035 is the paper's recommendation.
  double delta = 0.035;
  /// Nats a row that may be lost in any case. Where there is next to nothing to learn the first
  /// term of α is next to nothing too, and every row would become an inducing point. 0 is the
  /// paper's rule.
  double floor = 0.0;
  Pool pool = Pool::batch;
  Reference reference = Reference::automatic;
  Choose choose = Choose::variance;
  Index max_inducing = kNoCap;

  /// Throws std::invalid_argument for a setting out of range; so do those of the other methods.
  void validate() const;
  [[nodiscard]] Selection select(const SelectionProblem& problem) const;
  [[nodiscard]] static std::string name() { return "vips"; }
  [[nodiscard]] SelectionSettings settings() const;
};

/// Greedy variance over old points and batch, starting from nothing, until tr(K − Q) over that pool
/// is at most η.
struct ConditionalVariance {
  double eta = 0.5;
  Index max_inducing = kNoCap;

  void validate() const;
  [[nodiscard]] Selection select(const SelectionProblem& problem) const;
  [[nodiscard]] static std::string name() { return "cv"; }
  [[nodiscard]] SelectionSettings settings() const;
};

/// Online Inducing Point Selection (Galy-Fajou & Opper 2021): each x in turn becomes an inducing
/// point if its largest correlation with one is below ρ, correlations being those of the kernel
/// less its constant part. The first batch starts from k_min random points. Beyond max_inducing,
/// points that overlap are removed at random and ρ is lowered, as in the original paper.
struct Oips {
  double rho = 0.93;
  Index k_min = 10;
  Index max_inducing = kNoCap;

  void validate() const;
  [[nodiscard]] Selection select(const SelectionProblem& problem) const;
  [[nodiscard]] static std::string name() { return "oips"; }
  [[nodiscard]] SelectionSettings settings() const;
};

/// Greedy variance over old points and batch at constant M (fewer while the data are).
struct FixedGreedy {
  Index size = 100;

  void validate() const;
  [[nodiscard]] Selection select(const SelectionProblem& problem) const;
  [[nodiscard]] static std::string name() { return "fixed-greedy"; }
  [[nodiscard]] SelectionSettings settings() const;
};

/// Constant M, Z fitted together with θ by the gradient of the bound (Bui, Nguyen & Turner 2017).
struct FixedGradient {
  Index size = 100;

  void validate() const;
  [[nodiscard]] Selection select(const SelectionProblem& problem) const;
  [[nodiscard]] static std::string name() { return "fixed-gradient"; }
  [[nodiscard]] SelectionSettings settings() const;
};

/// The method with that name and those settings, missing ones at their defaults. Throws
/// std::invalid_argument for an unknown name, an unknown setting or a value out of range.
[[nodiscard]] SelectionMethod make_selection(std::string_view name,
                                             const SelectionSettings& settings = {});

}  // namespace ample
