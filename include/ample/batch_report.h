// What one batch did to a model: how many points it took and why no more, the bounds that decided
// it, the fit, and the seconds. The program writes it as a line of JSON, Python shows it as an
// object; both go through the one list of fields below.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ample/optimizer.h"
#include "ample/selection.h"
#include "ample/types.h"

namespace ample {

/// Values in nats are in the model's own, scaled units.
struct BatchReport {
  Index batch = 0;      // counted from 1
  Index rows = 0;       // of this batch
  Index rows_seen = 0;  // of all batches
  Index inducing_before = 0;
  Index inducing_added = 0;
  Index inducing_removed = 0;
  Index inducing = 0;  // M after this batch
  SelectionStop stop = SelectionStop::threshold;
  std::optional<double> optimum;      // L*, the best the bound could be at θ_old
  std::optional<double> lower_bound;  // L̂ at θ_old with the inducing points chosen
  std::optional<double> noise_bound;  // L_noise
  std::optional<double> threshold;    // α
  std::optional<double> gap;          // L* − L̂ = KL[q_n ‖ q*_n], in nats; none if below −rounding
  double rounding = 0.0;              // ε: what rounding may change the gap by
  double elbo = 0.0;                  // L̂ after the fit
  std::string kernel;                 // after the fit, in text form
  double noise_variance = 0.0;        // after the fit
  double jitter = 0.0;
  std::optional<double> chi_squared;  // how far the batch lay from what the model predicted
  std::optional<double> p_value;      // the probability of that, or farther, if the model holds
  Vector residuals;                   // of each row, in predicted deviations, before it was learnt
  double past_weight = 1.0;           // γ: what a row of the past counts from now on
  std::string forgot;                 // why γ < 1: "half-life" or "adaptive"
  bool relearnt = false;              // the past was learnt anew from the reservoir
  Index outliers = 0;               // rows that count for less, being more than ten deviations off
  double pruned_nats = 0.0;         // what removing points after the batch cost
  std::optional<double> lost_nats;  // gap + pruned_nats: what the batch lost in all. At unchanged
                                    // hyperparameters, KL[model ‖ q*_n]
  std::optional<double> coverage;   // share of the batch in its 95 % intervals, before it was
                                    // learnt
  std::string found_kernel;         // the candidates compared, if a kernel was found
  std::vector<std::string> warnings;  // what a user should know; one sentence each
  bool refitted = false;
  MinimizeSummary fit;  // empty if not refitted
  double seconds_select = 0.0;
  double seconds_fit = 0.0;
};

/// Calls visit(name, pointer to member) for every field but `fit`, in the order above.
template <class Visitor>
void for_each_report_field(Visitor&& visit) {
  visit("batch", &BatchReport::batch);
  visit("rows", &BatchReport::rows);
  visit("rows_seen", &BatchReport::rows_seen);
  visit("inducing_before", &BatchReport::inducing_before);
  visit("inducing_added", &BatchReport::inducing_added);
  visit("inducing_removed", &BatchReport::inducing_removed);
  visit("inducing", &BatchReport::inducing);
  visit("stop", &BatchReport::stop);
  visit("optimum", &BatchReport::optimum);
  visit("lower_bound", &BatchReport::lower_bound);
  visit("noise_bound", &BatchReport::noise_bound);
  visit("threshold", &BatchReport::threshold);
  visit("gap", &BatchReport::gap);
  visit("rounding", &BatchReport::rounding);
  visit("elbo", &BatchReport::elbo);
  visit("kernel", &BatchReport::kernel);
  visit("noise_variance", &BatchReport::noise_variance);
  visit("jitter", &BatchReport::jitter);
  visit("chi_squared", &BatchReport::chi_squared);
  visit("p_value", &BatchReport::p_value);
  visit("residuals", &BatchReport::residuals);
  visit("past_weight", &BatchReport::past_weight);
  visit("forgot", &BatchReport::forgot);
  visit("relearnt", &BatchReport::relearnt);
  visit("outliers", &BatchReport::outliers);
  visit("pruned_nats", &BatchReport::pruned_nats);
  visit("lost_nats", &BatchReport::lost_nats);
  visit("coverage", &BatchReport::coverage);
  visit("found_kernel", &BatchReport::found_kernel);
  visit("warnings", &BatchReport::warnings);
  visit("refitted", &BatchReport::refitted);
  visit("seconds_select", &BatchReport::seconds_select);
  visit("seconds_fit", &BatchReport::seconds_fit);
}

}  // namespace ample
