// Less of the past: every row that was learnt counts γ rows.
//
//   options.forget = Forgetting::after_rows(5000);      // a row counts half after 5000 others
//   options.forget = Forgetting::adaptive();            // as far as each batch contradicts the
//   past
//
//   State half = temper(state, 0.5);                    // A ← γA, c ← γc, F anew
//   auto evidence = TemperedEvidence::of(state, X, y);
//   double density = (*evidence)(0.5);                  // L* (9) after temper(state, 0.5)
//
// A tempered state is exactly the posterior under a likelihood raised to the power γ (a power
// prior). At γ = 1 nothing changes; at γ = 0 the model predicts its prior. Where nothing new comes,
// repeated tempering lets the prices of points (pruning.h) fall to zero.
#pragma once

#include <optional>
#include <string_view>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// What a model does with its past as batches come.
struct Forgetting {
  enum class Rule {
    never,      // every row counts alike, however old
    adaptive,   // each batch decides by its evidence what a past row counts
    half_life,  // a past row counts half after so many rows, or so much time
  };
  /// What a half-life is counted in: rows, or the units of ObserveOptions::time.
  enum class Clock { rows, time };

  [[nodiscard]] static Forgetting never() { return {}; }
  [[nodiscard]] static Forgetting adaptive() { return {.rule = Rule::adaptive}; }
  [[nodiscard]] static Forgetting after_rows(double rows) {
    return {.rule = Rule::half_life, .half_life = rows};
  }
  [[nodiscard]] static Forgetting after_time(double time) {
    return {.rule = Rule::half_life, .clock = Clock::time, .half_life = time};
  }

  /// γ = 2^(−elapsed/h): what a row counts that came so many rows, or so much time, ago. 1 without
  /// a half-life. The rows of one batch count alike, so batches should be shorter than a half-life.
  [[nodiscard]] double weight_after(double elapsed) const;
  [[nodiscard]] bool by_time() const { return rule == Rule::half_life && clock == Clock::time; }

  /// Throws std::invalid_argument unless a half-life is positive and finite, and there if and only
  /// if the rule has one. `where` begins the message.
  void validate(std::string_view where) const;

  bool operator==(const Forgetting&) const = default;

  Rule rule = Rule::never;
  Clock clock = Clock::rows;
  double half_life = 0.0;
};
[[nodiscard]] std::string_view to_string(Forgetting::Rule rule);

/// The state in which every past row counts γ rows, 0 ≤ γ ≤ 1. Inducing points stay. O(M³).
[[nodiscard]] State temper(const State& state, double gamma);

/// log N(y; mean_γ(X), Cov_γ(X, X) + σ² I) for any γ: how probable a batch is, were the past
/// tempered before it. Given ξ = L⁻¹b, y is Vᵀξ and noise of covariance B = K_ff − VᵀV + σ²I, so
///
///   L*(γ) = log N(y; 0, B) + F(γA + H, γc + h) − F(γA, γc),   H = V B⁻¹ Vᵀ,   h = V B⁻¹ y    (9″)
///
/// with F as in (1). O(N³ + M³) once, then O(M³) for each γ: two Cholesky factors, which cost far
/// less than turning A into a form in which every further γ is cheap.
class TemperedEvidence {
 public:
  /// Empty if B cannot be factorised.
  [[nodiscard]] static std::optional<TemperedEvidence> of(const State& state, const MatrixRef& X,
                                                          const VectorRef& y);

  /// L*(γ), 0 ≤ γ ≤ 1; minus infinity where it cannot be computed.
  [[nodiscard]] double operator()(double gamma) const;

 private:
  double constant_ = 0.0;  // log N(y; 0, B)
  Matrix A_;
  Vector c_;
  double F_ = 0.0;  // of A and c
  Matrix H_;
  Vector h_;
};

}  // namespace ample
