// The search behind VIPS, one inducing point at a time: the most uncertain candidate is taken, or
// the one that raises the bound most, and the bound is kept up to date (derivation §6). For
// stopping rules of one's own:
//
//   GreedySearch search(problem);
//   while (search.size() == 0 || !enough(search.lower_bound())) {
//     if (!search.take_next()) break;
//   }
//   Selection selection = search.selection();
//
// O(N M + M²) a point; by gain so much for each gain computed, of which a step needs a few.
#pragma once

#include <memory>
#include <vector>

#include "ample/selection.h"
#include "ample/types.h"

namespace ample {

class GreedySearch {
 public:
  /// From the batch alone, or from the old points and the batch together. Keeps references to what
  /// the problem refers to. Throws NumericalError if the precision of the batch cannot be
  /// factorised.
  explicit GreedySearch(const SelectionProblem& problem, Vips::Pool pool = Vips::Pool::batch,
                        Vips::Choose choose = Vips::Choose::variance);
  ~GreedySearch();
  GreedySearch(const GreedySearch&) = delete;
  GreedySearch& operator=(const GreedySearch&) = delete;

  /// Takes the next candidate. False when every one is taken or the rest is determined to
  /// rounding; why_exhausted() tells which.
  bool take_next();
  [[nodiscard]] SelectionStop why_exhausted() const;

  /// Inducing points so far, kept old ones included.
  [[nodiscard]] Index size() const;
  /// Points taken so far, and those that there are to take from.
  [[nodiscard]] Index taken() const;
  [[nodiscard]] Index candidates() const;
  /// How many of those taken are new, not old points that were chosen again.
  [[nodiscard]] Index added() const;

  /// L̂ with these points, or with the first `taken` of those taken.
  [[nodiscard]] double lower_bound() const { return lower_.back(); }
  [[nodiscard]] double lower_bound(Index taken) const;

  /// ε of the points taken.
  [[nodiscard]] double jitter() const { return jitter_; }

  /// Vᵀ of the batch for the points so far, row n times √w_n [N,M], and Σ w_n (k_nn − ‖v_n‖²).
  [[nodiscard]] Matrix scaled_Vt() const;
  [[nodiscard]] double residual() const { return residual_.back(); }
  /// Vᵀ = K_fa L_old⁻ᵀ, if the old points were kept; else empty.
  [[nodiscard]] MatrixRef Vt_old() const;
  [[nodiscard]] MatrixRef L_D() const;

  /// The result with the first `taken` of those taken, or with all.
  [[nodiscard]] Selection selection(Index taken, SelectionStop stop) const&;
  [[nodiscard]] Selection selection(SelectionStop stop = SelectionStop::threshold) const {
    return selection(taken(), stop);
  }
  /// The same at the end of a search, which is spent: its factors are handed on, not copied.
  [[nodiscard]] Selection selection(Index taken, SelectionStop stop) &&;

 private:
  struct Search;  // greedy variance, gains and incremental bound

  void record();
  [[nodiscard]] Selection chosen(Index taken, SelectionStop stop) const;
  [[nodiscard]] BoundFactors factors(Index taken) const;

  SelectionProblem p_;
  Vips::Pool pool_;
  double jitter_;
  std::unique_ptr<Search> search_;
  std::vector<double> lower_;     // L̂ by the number of points taken
  std::vector<double> residual_;  // Σ w_n r_n likewise
};

}  // namespace ample
