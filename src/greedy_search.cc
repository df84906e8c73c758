#include "ample/greedy_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "check.h"
#include "greedy_gain.h"
#include "greedy_variance.h"
#include "incremental_bound.h"
#include "selection_pool.h"

namespace ample {

namespace {

/// The bound with the points that a search begins with; their part of V is put into `greedy`.
IncrementalBound first_bound(const SelectionProblem& p, Vips::Pool pool, GreedyVariance& greedy) {
  if (pool == Vips::Pool::old_and_batch) return {p.old, p.sites};
  if (p.old.size() > 0) greedy.start_from(p.old.Z, p.old.L);
  if (auto bound = IncrementalBound::from_old(p.old, p.sites, greedy.Vt())) {
    return *std::move(bound);
  }
  throw NumericalError(
      "vips: the precision of the batch cannot be factorised; "
      "standardise the data or raise the lower bound of noise_variance");
}

}  // namespace

struct GreedySearch::Search {
  Search(const SelectionProblem& p, Vips::Pool pool, Vips::Choose choose, double jitter)
      : candidates(pool == Vips::Pool::batch ? Matrix(p.X) : stack(p.old.Z, p.X)),
        greedy(p.old.kernel, candidates, jitter, pool == Vips::Pool::batch ? 0 : p.old.size()),
        bound(first_bound(p, pool, greedy)) {
    if (choose == Vips::Choose::gain) {
      gain.emplace(candidates.rows(), candidates.rows() - p.X.rows());
      greedy.keep_covariance();
    }
  }

  [[nodiscard]] std::optional<Index> next() {
    const std::optional<Index> uncertain = greedy.most_uncertain();
    if (!uncertain || !gain) return uncertain;
    const std::optional<Index> best = gain->next(greedy, bound);
    return best ? best : uncertain;
  }

  Matrix candidates;
  GreedyVariance greedy;
  IncrementalBound bound;
  std::optional<GreedyGain> gain;
};

GreedySearch::GreedySearch(const SelectionProblem& problem, Vips::Pool pool, Vips::Choose choose)
    : p_(problem),
      pool_(pool),
      jitter_(selection_jitter(problem)),
      search_(std::make_unique<Search>(problem, pool, choose, jitter_)) {
  record();
}

GreedySearch::~GreedySearch() = default;

bool GreedySearch::take_next() {
  const std::optional<Index> next = search_->next();
  if (!next) return false;
  GreedyVariance& greedy = search_->greedy;
  greedy.take(*next);
  IncrementalBound& bound = search_->bound;
  if (pool_ == Vips::Pool::batch) {
    bound.append(greedy.Vt(), Vector());
  } else {
    bound.append(greedy.Vt().bottomRows(p_.X.rows()),
                 greedy.Vt().col(bound.size()).head(p_.old.size()));
  }
  record();
  return true;
}

void GreedySearch::record() {
  const auto r = search_->greedy.residual().tail(p_.X.rows());
  residual_.push_back(p_.sites.weighted() ? r.dot(p_.sites.weight) : r.sum());
  lower_.push_back(search_->bound.value(residual_.back()));
}

SelectionStop GreedySearch::why_exhausted() const { return ample::why_exhausted(search_->greedy); }
Index GreedySearch::size() const { return search_->bound.size(); }
Index GreedySearch::taken() const { return static_cast<Index>(search_->greedy.taken().size()); }
Index GreedySearch::candidates() const { return search_->candidates.rows(); }

Index GreedySearch::added() const {
  if (pool_ == Vips::Pool::batch) return taken();
  const auto& taken = search_->greedy.taken();
  return std::count_if(taken.begin(), taken.end(), [&](Index i) { return i >= p_.old.size(); });
}

double GreedySearch::lower_bound(Index taken) const {
  return lower_.at(static_cast<std::size_t>(taken));
}

Matrix GreedySearch::scaled_Vt() const {
  const auto Vt = search_->greedy.Vt().bottomRows(p_.X.rows());
  if (!p_.sites.weighted()) return Vt;
  return (Vt.array().colwise() * p_.sites.weight.array().sqrt()).matrix();
}

MatrixRef GreedySearch::Vt_old() const {
  return search_->greedy.Vt().leftCols(pool_ == Vips::Pool::batch ? p_.old.size() : 0);
}

MatrixRef GreedySearch::L_D() const { return search_->bound.L_D(); }

Selection GreedySearch::selection(Index taken, SelectionStop stop) const& {
  Selection out = chosen(taken, stop);
  if (out.factors) search_->bound.write_factors(out.Z.rows(), *out.factors);
  return out;
}

Selection GreedySearch::selection(Index taken, SelectionStop stop) && {
  Selection out = chosen(taken, stop);
  if (out.factors) std::move(search_->bound).write_factors(out.Z.rows(), *out.factors);
  return out;
}

Selection GreedySearch::chosen(Index taken, SelectionStop stop) const {
  const auto& all = search_->greedy.taken();
  AMPLE_ASSERT(taken <= static_cast<Index>(all.size()));
  const std::vector<Index> chosen(all.begin(), all.begin() + taken);
  Selection out;
  if (pool_ == Vips::Pool::batch) {
    out.Z = stack(p_.old.Z, rows_of(p_.X, chosen));
    out.added = taken;
    // Without a past the fit begins with the jitter of the points themselves, not of the batch.
    if (p_.old.size() > 0) out.factors = factors(taken);
  } else {
    out = from_pool(p_, search_->candidates, chosen);
  }
  out.stop = stop;
  out.lower_bound = lower_bound(taken);
  return out;
}

// The bound at θ_old with Z = [Z_old; those taken], as OnlineBound would factorise it; A, c, L_D
// and w are for the incremental bound to fill in.
BoundFactors GreedySearch::factors(Index taken) const {
  const GreedyVariance& greedy = search_->greedy;
  const Index M_a = p_.old.size();
  const Index M = M_a + taken;
  BoundFactors f;
  // Row j of L is what the j-th point's own column of V began with.
  f.L.resize(M, M);
  f.L.topLeftCorner(M_a, M_a).triangularView<Eigen::Lower>() = p_.old.L;
  for (Index j = 0; j < taken; ++j) {
    const auto place = static_cast<std::size_t>(j);
    f.L.row(M_a + j).head(M_a + j) = greedy.Vt().row(greedy.taken()[place]).head(M_a + j);
    f.L(M_a + j, M_a + j) = greedy.pivots()[place];
  }
  f.Vt = greedy.Vt().leftCols(M);
  if (p_.sites.weighted()) f.Vt.array().colwise() *= p_.sites.weight.array().sqrt();
  f.jitter = jitter_;
  f.residual = residual_[static_cast<std::size_t>(taken)];
  return f;
}

}  // namespace ample
