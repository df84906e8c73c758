#include "ample/merge.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <set>
#include <utility>

#include "ample/bound.h"
#include "ample/pruning.h"
#include "check.h"
#include "fit.h"
#include "stopwatch.h"

namespace ample {
namespace {

using MergeCheckpoint = ContinualGP::Checkpoint;

// Nats for a row that joins the largest model. Of 16,000 rows in eight shards they make 14 nats,
// for which four points of five go and no digit of the error changes (docs/decisions/0017).
constexpr double kNatsARow = 1e-3;

// A fit ends when steps gain less. A hundredth of a nat changes no prediction.
constexpr double kMergeFitTolerance = 0.01;

/// One of the models, and what it gives.
struct Source {
  std::shared_ptr<const MergeCheckpoint> model;
  std::string name;

  [[nodiscard]] bool empty() const { return !model->predictor; }
  /// Whether it still holds all rows that it has seen: its scaling and its kernel may yet change.
  [[nodiscard]] bool holds_its_rows() const {
    return model->pending.X.rows() > 0 && !model->pending.base;
  }
  [[nodiscard]] Index rows() const { return model->targets.count; }
  [[nodiscard]] const State& state() const { return model->predictor->state(); }
  [[nodiscard]] const Scaling& scaling() const { return model->predictor->scaling(); }
};

/// The text of a kernel without the values of its parameters, their bounds and whether they are
/// fixed: "constant(variance) + matern52(variance, lengthscale, dims=[0])".
std::string form_of(const Kernel& kernel) {
  std::string fields;
  for (const Parameter& parameter : kernel.parameters()) {
    const std::size_t dot = parameter.name.find('.') + 1;
    const std::string field = parameter.name.substr(dot, parameter.name.find('[') - dot);
    fields += fields.empty() ? field : "|" + field;
  }
  if (fields.empty()) return kernel.to_string();
  const std::regex value(R"(\b()" + fields +
                         R"()=(\[[^\]]*\]|[^,\[)]*?)( in \[[^\]]*\])?( fixed)?(?=[,)]))");
  return std::regex_replace(kernel.to_string(), value, "$1");
}

void check_forms(const Source& a, const Source& b) {
  const std::string form_a = form_of(a.state().kernel);
  const std::string form_b = form_of(b.state().kernel);
  if (form_a != form_b) {
    invalid("merge: {} has the kernel {}, but must have {} as {}; or give a kernel for all", b.name,
            form_b, form_a, a.name);
  }
  if (a.state().kernel.num_parameters() != b.state().kernel.num_parameters()) {
    invalid(
        "merge: the kernel of {} has {} parameters, but must have {} as that of {}; or give a "
        "kernel for all",
        b.name, b.state().kernel.num_parameters(), a.state().kernel.num_parameters(), a.name);
  }
}

void check_scalings(const Source& a, const Source& b) {
  const auto check = [&](const std::string& what, double mean_a, double scale_a, double mean_b,
                         double scale_b) {
    if (mean_a == mean_b && scale_a == scale_b) return;
    invalid(
        "merge: {} scales {} by mean {} and deviation {}, but must by {} and {} as {}; begin all "
        "of them like one pilot",
        b.name, what, mean_b, scale_b, mean_a, scale_a, a.name);
  };
  const Scaling& of_a = a.scaling();
  const Scaling& of_b = b.scaling();
  for (Index d = 0; d < of_a.input_mean.size(); ++d) {
    check(fmt::format("input {}", d), of_a.input_mean[d], of_a.input_scale[d], of_b.input_mean[d],
          of_b.input_scale[d]);
  }
  check("the target", of_a.target_mean, of_a.target_scale, of_b.target_mean, of_b.target_scale);
}

/// The models that are not empty.
std::vector<Source> sources_of(std::span<const ContinualGP> models, const MergeOptions& options) {
  if (models.empty()) invalid("merge: no models are given, but there must be one or more");
  if (!options.names.empty() && options.names.size() != models.size()) {
    invalid("merge: {} names are given for {} models", options.names.size(), models.size());
  }
  std::vector<Source> sources;
  for (std::size_t i = 0; i < models.size(); ++i) {
    Source source{models[i].checkpoint(),
                  options.names.empty() ? fmt::format("model {}", i + 1) : options.names[i]};
    if (source.empty()) continue;
    for (const Source& other : sources) {
      if (other.model == source.model) {
        invalid("merge: {} is {} again; its rows would count twice", source.name, other.name);
      }
      if (const Index D = other.model->predictor->dimension();
          source.model->predictor->dimension() != D) {
        invalid("merge: {} has {} inputs, but must have {} as {}", source.name,
                source.model->predictor->dimension(), D, other.name);
      }
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

void check_limits(const MergeOptions& options) {
  if (options.nats && !(*options.nats >= 0.0)) {
    invalid("merge: nats is {}, but must be 0 or more", *options.nats);
  }
  if (options.max_inducing && *options.max_inducing < 1) {
    invalid("merge: max_inducing is {}, but must be at least 1", *options.max_inducing);
  }
}

bool asks_for_theta(const MergeOptions& options) {
  return options.kernel || options.noise_variance || options.fit;
}

/// The most points that a model may have: what is asked for, or what its method allows.
Index most_points(const MergeOptions& options, const ContinualGPOptions& model) {
  return options.max_inducing.value_or(model.selection.most_points());
}

/// Z_b: the points of all states, those of the first as they stand, equal ones once.
Matrix union_of(const std::vector<const State*>& states) {
  const auto before = [](const Vector& a, const Vector& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::set<Vector, decltype(before)> seen(before);
  std::vector<Vector> points;
  for (const State* state : states) {
    for (Index i = 0; i < state->size(); ++i) {
      const Vector point = state->Z.row(i);
      if (seen.insert(point).second) points.push_back(point);
    }
  }
  Matrix Z(static_cast<Index>(points.size()), states.front()->dimension());
  for (Index i = 0; i < Z.rows(); ++i) Z.row(i) = points[static_cast<std::size_t>(i)].transpose();
  return Z;
}

/// Joins the states of models: pairs at first, then what they became with the next.
class Union {
 public:
  Union(Hyperparameters theta, const MinimizeOptions& fit, const ShouldStop& should_stop,
        MergeReport& report)
      : theta_(std::move(theta)), fit_(fit), should_stop_(should_stop), report_(report) {
    fit_.absolute_value_tolerance = std::max(fit_.absolute_value_tolerance, kMergeFitTolerance);
  }

  [[nodiscard]] const Hyperparameters& theta() const { return theta_; }

  /// (21) at θ, or at the θ that maximises it.
  [[nodiscard]] State of(const std::vector<const State*>& states, bool fit) {
    const Matrix Z = union_of(states);
    const Matrix no_rows(0, Z.cols());
    OnlineBound bound(states, no_rows, Vector());
    bool is_there = bound.factorize(theta_.kernel, theta_.noise(), Z);
    if (!is_there) {
      throw NumericalError(
          fmt::format("merge: {} points cannot be factorised at {} and noise variance {}", Z.rows(),
                      theta_.kernel.to_string(), theta_.noise()));
    }
    if (fit && theta_.size() > 0) {
      Curvature none;
      Fitted fitted = ample::fit(bound, true, theta_, Z, false, fit_, none, should_stop_);
      if (fitted.summary.usable()) theta_ = std::move(fitted.theta);
      is_there = fitted.bound_is_there;
      report_.fitted = true;
      report_.fit = std::move(fitted.summary);
    }
    if (!is_there && !bound.factorize(theta_.kernel, theta_.noise(), Z)) {
      throw NumericalError("merge: the union cannot be factorised at the hyperparameters fitted");
    }
    report_.bound += bound.value();
    return bound.absorb();
  }

  /// What a state loses at θ: −L̂ of it alone, with the points that it has.
  [[nodiscard]] double cost_of_theta(const State& state) const {
    if (state.noise_variance == theta_.noise() && state.kernel == theta_.kernel) return 0.0;
    const Matrix no_rows(0, state.dimension());
    OnlineBound bound(state, no_rows, Vector());
    // A union that holds these points has been factorised; should it fail, nothing can be said.
    return bound.factorize(theta_.kernel, theta_.noise(), state.Z) ? -bound.value() : 0.0;
  }

 private:
  Hyperparameters theta_;
  MinimizeOptions fit_;
  const ShouldStop& should_stop_;
  MergeReport& report_;
};

/// The budget, and what may be spent of it when so many of the rows have joined.
struct Budget {
  double nats = 0.0;
  Index most = kNoCap;
  Index rows = 0;  // that join the largest model, in all
};

/// The states of the settled models, the largest first, as one.
State join(const std::vector<Source>& settled, Union& merger, const MergeOptions& options,
           const Budget& budget, MergeReport& report) {
  const bool may_prune = budget.nats > 0.0 || budget.most < kNoCap;
  std::optional<State> joined;
  const State* head = &settled.front().state();
  Index rows = 0;
  std::size_t next = 1;
  do {
    std::vector<const State*> group{head};
    Index points = head->size();
    while (next < settled.size() &&
           (group.size() == 1 || !may_prune ||
            points + settled[next].state().size() <= options.largest_union)) {
      group.push_back(&settled[next].state());
      points += settled[next].state().size();
      rows += settled[next].rows();
      ++next;
    }
    const bool is_last = next == settled.size();
    State piece = merger.of(group, options.fit && is_last);
    if (!is_last) {
      const double share = static_cast<double>(rows) / static_cast<double>(budget.rows);
      Pruned pruned = prune(piece, {.nats = std::max(0.0, share * budget.nats - report.pruned_nats),
                                    .points = 1,
                                    .most = budget.most});
      report.pruned_nats += pruned.nats;
      piece = std::move(pruned.state);
    }
    joined.emplace(std::move(piece));
    head = &*joined;
    if (options.progress) {
      options.progress(static_cast<Index>(next), static_cast<Index>(settled.size()));
    }
  } while (next < settled.size());
  return *std::move(joined);
}

/// The rows of a model's reservoir, and those that wait for a refit, which are not in it yet.
Reservoir reservoir_of(const MergeCheckpoint& model) {
  Reservoir rows = model.reservoir;
  const ContinualGP::Pending& pending = model.pending;
  if (pending.X.rows() > 0 && model.options.reservoir > 0) {
    const Scaling& scaling = model.predictor->scaling();
    rows.offer(scaling.inputs(pending.X), scaling.targets(pending.y), model.options.reservoir,
               model.options.seed);
  }
  return rows;
}

/// The settled models as one, the largest first.
MergeCheckpoint merge_settled(const std::vector<Source>& settled, const MergeOptions& options,
                              const Budget& budget, MergeReport& report) {
  const MergeCheckpoint& largest = *settled.front().model;
  for (const Source& other : settled) {
    if (!options.kernel) check_forms(settled.front(), other);
    check_scalings(settled.front(), other);
  }
  Hyperparameters theta = largest.theta;
  theta.kernel = options.kernel.value_or(settled.front().state().kernel);
  if (options.noise_variance) theta.noise_variance = *options.noise_variance;
  theta.check("merge");
  theta.kernel.check_dimension(largest.predictor->dimension());

  Union merger(theta, largest.options.fit, options.should_stop, report);
  State state = join(settled, merger, options, budget, report);
  for (const Source& source : settled) {
    report.carried_nats += merger.cost_of_theta(source.state());
  }
  MergeCheckpoint merged{.options = largest.options,
                         .theta = merger.theta(),
                         .predictor = nullptr,
                         .targets = {},
                         .batches = 0,
                         .curvature = {},
                         .reservoir = {},
                         .pending = {},
                         .fitted_rows = largest.fitted_rows,
                         .time = {}};
  // A kernel that was given is not looked for again.
  if (options.kernel) merged.options.find_kernel = false;
  merged.theta.kernel = state.kernel;
  merged.predictor =
      std::make_shared<const Predictor>(std::move(state), largest.predictor->scaling());
  for (const Source& source : settled) {
    merged.targets.merge(source.model->targets);
    merged.batches += source.model->batches;
    if (source.model->time) {
      merged.time = std::max(merged.time.value_or(*source.model->time), *source.model->time);
    }
    if (merged.options.reservoir > 0) {
      merged.reservoir = sample_of_both(merged.reservoir, reservoir_of(*source.model),
                                        merged.options.reservoir, merged.options.seed);
    }
  }
  return merged;
}

/// Learns the rows that models still hold, in a model that has begun with its θ held. There is no
/// order between models, so none of them is a reason to forget another.
void learn_rows(ContinualGP& model, const std::vector<Source>& young, const MergeOptions& options,
                MergeReport& report) {
  const ContinualGPOptions own = model.checkpoint()->options;
  const auto change_options = [&](const auto& change) {
    MergeCheckpoint changed = *model.checkpoint();
    change(changed);
    model = ContinualGP(std::move(changed));
  };
  const bool holds_theta = model.predictor() != nullptr || options.kernel.has_value();
  change_options([&](MergeCheckpoint& now) {
    now.options.forget = Forgetting::never();
    if (!holds_theta) return;
    now.options.refit_every = 0;
    if (now.predictor) now.options.refit_rows = 0;
  });
  for (const Source& source : young) {
    const ContinualGP::Pending& rows = source.model->pending;
    model.observe(rows.X, rows.y, {.weights = rows.weights, .should_stop = options.should_stop});
    report.rows_learnt += rows.X.rows();
    change_options([&](MergeCheckpoint& now) {
      now.batches += source.model->batches - 1;
      if (source.model->time)
        now.time = std::max(now.time.value_or(*source.model->time), *source.model->time);
    });
  }
  change_options([&](MergeCheckpoint& now) { now.options = own; });
}

/// Where models begin of which none is settled.
ContinualGP first_model(const MergeCheckpoint& largest, const MergeOptions& options) {
  ContinualGPOptions begin = largest.options;
  if (options.kernel) {
    begin.start.kernel = *options.kernel;
    begin.find_kernel = false;
    begin.search_start = false;
  }
  if (options.noise_variance) begin.start.noise_variance = *options.noise_variance;
  return ContinualGP(begin);
}

void prune_within(ContinualGP& model, const Budget& budget, MergeReport& report) {
  const auto now = model.checkpoint();
  if (!now->predictor || now->warming_up()) return;
  if (const double left = budget.nats - report.pruned_nats; left > 0.0) {
    report.pruned_nats += model.compress(left).nats;
  }
  if (model.size() > budget.most) report.pruned_nats += model.compress_to(budget.most).nats;
}

}  // namespace

Merged merge(std::span<const ContinualGP> models, const MergeOptions& options) {
  const Stopwatch watch;
  check_limits(options);
  MergeReport report;
  report.models = static_cast<Index>(models.size());
  std::vector<Source> settled;
  std::vector<Source> young;
  for (Source& source : sources_of(models, options)) {
    report.rows += source.rows();
    (source.holds_its_rows() ? young : settled).push_back(std::move(source));
  }
  if (settled.empty() && young.empty()) return {models.front(), report};

  std::vector<Source>& begun = settled.empty() ? young : settled;
  const auto largest = std::ranges::max_element(begun, {}, &Source::rows);
  const std::shared_ptr<const MergeCheckpoint> reference = largest->model;
  std::rotate(begun.begin(), largest, largest + 1);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (models[i].checkpoint() == reference) report.largest = static_cast<Index>(i);
  }

  Budget budget{.most = most_points(options, reference->options)};
  for (const Source& source : std::span(settled).subspan(settled.empty() ? 0 : 1)) {
    budget.rows += source.rows();
  }
  budget.nats = options.nats.value_or(kNatsARow * static_cast<double>(budget.rows));
  report.allowed_nats = budget.nats;

  for (const auto* sources : {&settled, &young}) {
    for (const Source& source : *sources) report.inducing_before += source.state().size();
  }
  ContinualGP model(*reference);
  if (settled.size() + young.size() > 1 || asks_for_theta(options)) {
    model = settled.empty() ? first_model(*reference, options)
                            : ContinualGP(merge_settled(settled, options, budget, report));
    if (!young.empty()) learn_rows(model, young, options, report);
  }
  report.inducing_union = model.size();
  prune_within(model, budget, report);
  if (options.like) {
    MergeCheckpoint merged = *model.checkpoint();
    merged.options = *options.like;
    if (options.kernel) merged.options.find_kernel = false;
    if (merged.options.reservoir == 0) {
      merged.reservoir = {};
    } else if (merged.reservoir.size() > merged.options.reservoir) {
      merged.reservoir =
          sample_of_both(merged.reservoir, {}, merged.options.reservoir, merged.options.seed);
    }
    merged.options.warm_up = std::min(merged.options.warm_up, merged.pending.X.rows());
    model = ContinualGP(std::move(merged));
  }

  const State& state = model.predictor()->state();
  report.inducing = state.size();
  report.kernel = state.kernel.to_string();
  report.noise_variance = state.noise_variance;
  report.jitter = state.jitter;
  report.seconds = watch.seconds();
  return {std::move(model), std::move(report)};
}

ContinualGP empty_like(const ContinualGP& pilot, bool fixed_hyperparameters) {
  const auto model = pilot.checkpoint();
  if (!model->predictor || model->warming_up()) {
    invalid("empty_like: the pilot has seen {} rows, but must have begun, which takes {}",
            model->targets.count, std::max<Index>(1, model->options.warm_up));
  }
  ContinualGPOptions options = model->options;
  options.start = model->theta;
  options.scaling = model->predictor->scaling();
  options.find_kernel = false;
  options.search_start = false;
  options.warm_up = 0;
  if (fixed_hyperparameters) {
    options.refit_every = 0;
    options.forget = Forgetting::never();
  }
  return ContinualGP(options);
}

}  // namespace ample
