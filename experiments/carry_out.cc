#include "carry_out.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/snapshot.h"
#include "ample/threads.h"
#include "diagnostics.h"
#include "errors.h"
#include "interrupt.h"
#include "job.h"
#include "stopwatch.h"

namespace ample::experiments {
namespace {

// Rows predicted at once: [rows, M] is then the largest matrix.
constexpr Index kPredictRows = 1000;

template <class Model>
Prediction predict(const Model& model, const Matrix& X) {
  Prediction all{Vector(X.rows()), Vector(X.rows())};
  for (Index first = 0; first < X.rows(); first += kPredictRows) {
    const Index count = std::min(kPredictRows, X.rows() - first);
    const Prediction part = model.predict(X.middleRows(first, count), Target::observation);
    all.mean.segment(first, count) = part.mean;
    all.variance.segment(first, count) = part.variance;
  }
  return all;
}

/// Fills in the errors of a model, and of the noise model of the targets seen, which are in the
/// scaled units, on a test set.
template <class Model>
void score(const Model& model, const TargetStatistics& targets, const Scaling& scaling,
           const Batch& test, BatchResult& result) {
  const Prediction p = predict(model, test.X);
  result.rmse = rmse(test.y, p.mean);
  result.nlpd = nlpd(test.y, p);
  const Prediction noise = scaling.restore(targets.predict(test.y.size()));
  result.noise_rmse = rmse(test.y, noise.mean);
  result.noise_nlpd = nlpd(test.y, noise);
}

nlohmann::ordered_json parameter_json(const Parameter& p) {
  return {{"start", p.value}, {"lower", p.lower}, {"upper", p.upper}};
}

/// All that a reader needs to do the same elsewhere.
std::string settings_text(const Run& run, const ContinualGPOptions& options) {
  nlohmann::ordered_json json{{"kernel", options.start.kernel.to_string()}};
  for (const Parameter& p : options.start.kernel.parameters()) json[p.name] = parameter_json(p);
  json["noise_variance"] = {{"start", options.start.noise()},
                            {"lower", options.start.noise_variance.lower},
                            {"upper", options.start.noise_variance.upper}};
  json["selection"] = run.method;
  if (run.method != "exact") {
    for (const auto& [name, value] : options.selection.settings()) json[name] = value;
    json["fit_tolerance"] = options.fit_tolerance;
    json["refit_every"] = options.refit_every;
    // What the paper does not have; a run without it says nothing of it.
    if (options.prune > 0.0) json["prune"] = options.prune;
    if (options.find_kernel) json["find_kernel"] = true;
    if (options.warm_up > 0) json["warm_up"] = options.warm_up;
    if (options.refit_rows > 0) json["refit_rows"] = options.refit_rows;
    if (options.reservoir > 0) json["reservoir"] = options.reservoir;
    if (options.forget != Forgetting::never()) json["forget"] = to_string(options.forget.rule);
  }
  json["seed"] = options.seed;
  return json.dump();
}

// --- The exact GP -------------------------------------------------------------------------------

// The first fit is one of about so many rows. It is repeated with twice as many until it is all of
// them: each begins near its end, and an evaluation takes eight times as long as the last.
constexpr Index kExactStartRows = 1000;

// Nats. Changes of the evidence far below one do not show in predictions.
constexpr double kExactTolerance = 0.1;

/// Every k-th row.
Batch thinned(const Batch& data, Index k) {
  const auto every = Eigen::seq(Index{0}, data.X.rows() - 1, k);
  return {data.X(every, Eigen::all), data.y(every)};
}

void run_exact(const Run& run, const Job& job, Results& results) {
  const Stopwatch clock;
  Progress progress;
  for (const Index seen : job.exact_after) {
    const Batch train = job.train_until(seen);
    TargetStatistics targets;
    targets.observe(train.y);
    const Stopwatch fit_clock;
    BatchResult result;
    result.batch = seen;
    result.rows_seen = result.inducing = train.X.rows();
    result.stop = "all data";
    MinimizeOptions options;
    options.absolute_value_tolerance = kExactTolerance;
    Hyperparameters start = job.options.start;
    Curvature curvature;
    const auto times = static_cast<std::uint64_t>(train.X.rows() / kExactStartRows);
    for (auto every = static_cast<Index>(std::bit_floor(times)); every > 1; every /= 2) {
      const Batch part = thinned(train, every);
      ExactGP first(start);
      result.evaluations +=
          first.fit(part.X, part.y, options, &curvature, cli::stop_on_signal).evaluations;
      start = first.hyperparameters();
      // The evidence is a sum over rows.
      for (Curvature::Pair& pair : curvature.pairs) pair.y *= 2.0;
    }
    ExactGP gp(start);
    result.evaluations +=
        gp.fit(train.X, train.y, options, &curvature, cli::stop_on_signal).evaluations;
    result.seconds_fit = fit_clock.seconds();
    result.elbo = gp.log_evidence();
    result.kernel = gp.hyperparameters().kernel.to_string();
    result.noise_variance = gp.hyperparameters().noise();
    score(gp, targets, Scaling::identity(train.X.cols()), job.test(seen), result);
    progress.batches.push_back(std::move(result));
  }
  progress.seconds = clock.seconds();
  results.finish(run, progress, settings_text(run, job.options), threads());
}

// --- The continual models -----------------------------------------------------------------------

BatchResult summary_of(const BatchReport& report) {
  return {.batch = report.batch,
          .rows_seen = report.rows_seen,
          .inducing = report.inducing,
          .added = report.inducing_added,
          .removed = report.inducing_removed,
          .stop = std::string(to_string(report.stop)),
          .elbo = report.elbo,
          .threshold = report.threshold,
          .gap = report.gap,
          .kernel = report.kernel,
          .noise_variance = report.noise_variance,
          .evaluations = report.fit.evaluations,
          .seconds_select = report.seconds_select,
          .seconds_fit = report.seconds_fit};
}

struct Start {
  ContinualGP model;
  double seconds;
};

/// Where the run was stopped, or its beginning. What was saved under other settings, or cannot be
/// read, is forgotten: going on from it would end with other results than the run declares.
Start resume(const Run& run, const Job& job, const std::string& settings, Results& results) {
  if (results.state(run) == RunState::begun) {
    const std::optional<Interruption> before = results.interruption(run);
    std::string why = "its model was not saved";
    if (before && before->settings != settings) {
      why = "it was saved with other settings";
    } else if (before) {
      try {
        return {from_bytes(before->model), before->seconds};
      } catch (const ModelFileError&) {
        why = "its saved model is damaged";
      }
    }
    cli::say(run.key(), "begins anew: " + why);
    results.forget(run);
  }
  return {ContinualGP(job.options), 0.0};
}

void run_continual(const Run& run, const Job& job, double seconds_between_saves, Results& results) {
  const std::string settings = settings_text(run, job.options);
  Start start = resume(run, job, settings, results);
  const Stopwatch clock(start.seconds);
  ContinualGP model = std::move(start.model);
  Progress unsaved;
  double last_save = clock.seconds();
  const auto keep = [&] {
    unsaved.seconds = clock.seconds();
    results.keep(run, unsaved, settings, to_bytes(model));
    unsaved = {};
    last_save = clock.seconds();
  };
  while (model.batches() < job.batches) {
    const Batch batch = job.train(model.batches());
    try {
      cli::stop_if_interrupted();
      unsaved.batches.push_back(
          summary_of(model.observe(batch.X, batch.y, {.should_stop = cli::stop_on_signal})));
    } catch (const cli::Interrupted&) {
      if (!unsaved.batches.empty()) keep();
      throw;
    }
    const Index seen = model.batches();
    score(model, model.checkpoint()->targets, model.predictor()->scaling(), job.test(seen),
          unsaved.batches.back());
    if (job.draw) {
      for (Drawing& d : job.draw(model, seen)) unsaved.drawings.push_back(std::move(d));
    }
    if (seen < job.batches && clock.seconds() - last_save >= seconds_between_saves) keep();
  }
  unsaved.seconds = clock.seconds();
  results.finish(run, unsaved, settings, threads());
}

}  // namespace

void carry_out(const Run& run, const std::filesystem::path& data_folder,
               double seconds_between_saves, Results& results) {
  if (results.state(run) == RunState::failed) results.forget(run);
  const Job job = make_job(run, data_folder);
  try {
    if (run.method == "exact") {
      run_exact(run, job, results);
    } else {
      run_continual(run, job, seconds_between_saves, results);
    }
  } catch (const NumericalError& error) {
    results.fail(run, error.what());
    throw;
  }
}

}  // namespace ample::experiments
