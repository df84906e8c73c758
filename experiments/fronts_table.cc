#include "fronts_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "markdown_table.h"
#include "plan.h"
#include "protocol.h"

namespace ample::experiments {
namespace {

using FrontStart = FrontRule::Start;

/// Nothing if they have no fold in common.
std::optional<BesideThePaper> compare(const FrontFolds& ours, const FrontFolds& the_papers) {
  BesideThePaper sum;
  for (const auto& [fold, last] : ours) {
    const auto paper = the_papers.find(fold);
    if (paper == the_papers.end()) continue;
    ++sum.folds;
    sum.inducing += static_cast<double>(last.inducing);
    sum.paper_inducing += static_cast<double>(paper->second.inducing);
    sum.rmse += last.rmse;
    sum.paper_rmse += paper->second.rmse;
  }
  if (sum.folds == 0) return std::nullopt;
  const auto n = static_cast<double>(sum.folds);
  for (double* total : {&sum.inducing, &sum.paper_inducing, &sum.rmse, &sum.paper_rmse})
    *total /= n;
  return sum;
}

/// Null if it was not run.
const FrontFolds* folds_of(const Fronts& fronts, const std::string& rule, double delta,
                           const std::string& data) {
  const auto at = fronts.find({rule, delta});
  if (at == fronts.end()) return nullptr;
  const auto found = at->second.find(data);
  return found == at->second.end() ? nullptr : &found->second;
}

/// Nothing unless both were run on all six sets.
std::optional<FrontChoice> choice_of(const Fronts& fronts, const std::string& rule, double delta,
                                     double paper_delta) {
  FrontChoice choice{.rule = rule, .delta = delta, .sets = {}};
  for (const std::string& data : uci_names()) {
    const FrontFolds* ours = folds_of(fronts, rule, delta, data);
    const FrontFolds* the_papers = folds_of(fronts, FrontRule{}.name(), paper_delta, data);
    if (ours == nullptr || the_papers == nullptr) return std::nullopt;
    const auto beside = compare(*ours, *the_papers);
    if (!beside) return std::nullopt;
    choice.sets[data] = *beside;
  }
  return choice;
}

std::string rule_text(const std::string& name) {
  const FrontRule rule = front_rule(name);
  return fmt::format("{}, β = {}{}", rule.choose == Vips::Choose::variance ? "variance" : "gain",
                     rule.beta, rule.cap > 0 ? fmt::format(", at most {}", rule.cap) : "");
}

/// M, RMSE and NLPD of one set: a row for each rule, a column for each δ.
std::string set_table(const Fronts& fronts, const std::string& data, FrontStart start,
                      const std::vector<double>& deltas) {
  std::vector<std::string> head{"M, RMSE, NLPD"};
  for (const double delta : deltas) head.push_back(fmt::format("δ = {}", delta));
  MarkdownTable table(std::move(head));
  for (const FrontRule& rule : front_rules(start)) {
    std::vector<std::string> row{rule_text(rule.name())};
    for (const double delta : deltas) {
      const FrontFolds* folds = folds_of(fronts, rule.name(), delta, data);
      if (folds == nullptr) {
        row.emplace_back("not run");
        continue;
      }
      double inducing = 0.0;
      double rmse = 0.0;
      double nlpd = 0.0;
      for (const auto& [fold, last] : *folds) {
        inducing += static_cast<double>(last.inducing);
        rmse += last.rmse;
        nlpd += last.nlpd;
      }
      const auto n = static_cast<double>(folds->size());
      row.push_back(fmt::format("{:.0f} {:.4f} {:.3f}", inducing / n, rmse / n, nlpd / n));
      if (data != "magnetic" && folds->size() < static_cast<std::size_t>(kFolds)) {
        row.back() += fmt::format(" ({})", folds->size());
      }
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string choice_table(const Fronts& fronts) {
  std::vector<std::string> head{"as accurate as the paper's rule at", "start", "rule"};
  for (const std::string& data : uci_names()) head.push_back(data);
  head.emplace_back("geometric mean");
  MarkdownTable table(std::move(head));
  for (const double paper_delta : {0.02, 0.095, 0.2}) {
    for (const FrontStart start : {FrontStart::paper, FrontStart::out_of_the_box}) {
      std::vector<std::string> row{fmt::format("δ = {}", paper_delta),
                                   start == FrontStart::paper ? "the paper's" : "the default"};
      const auto best = best_choice(fronts, start, paper_delta);
      if (!best) {
        row.emplace_back("not run");
        table.add(std::move(row));
        continue;
      }
      row.push_back(fmt::format("{}, δ = {}", rule_text(best->rule), best->delta));
      for (const std::string& data : uci_names()) {
        const BesideThePaper& set = best->sets.at(data);
        row.push_back(fmt::format("{}{:.0f} of {:.0f}", set.is_close() ? "" : "✗ ", set.inducing,
                                  set.paper_inducing));
      }
      row.push_back(fmt::format("{:.2f}", best->size()));
      table.add(std::move(row));
    }
  }
  return table.text();
}

}  // namespace

Fronts read_fronts(const Results& results) {
  Fronts fronts;
  PlanFilter filter;
  filter.experiments = {"fronts", "uci", "magnetic-paths"};
  filter.whole_sweep = true;
  for (const Run& run : plan(filter)) {
    const bool own = run.experiment == "fronts";
    if ((!own && run.method != "vips") || !results.seconds(run)) continue;
    const std::string rule = own ? run.method : FrontRule{}.name();
    fronts[{rule, run.parameter}][run.data].emplace(run.fold, results.last_batch(run).value());
  }
  return fronts;
}

std::size_t FrontChoice::close() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sets, [](const auto& entry) { return entry.second.is_close(); }));
}

double FrontChoice::size() const {
  double sum = 0.0;
  for (const auto& [data, set] : sets) sum += std::log(set.inducing / set.paper_inducing);
  return std::exp(sum / static_cast<double>(sets.size()));
}

std::optional<FrontChoice> best_choice(const Fronts& fronts, FrontStart start, double paper_delta) {
  std::optional<FrontChoice> best;
  for (const auto& [at, sets] : fronts) {
    const auto& [rule, delta] = at;
    if (front_rule(rule).start != start) continue;
    auto choice = choice_of(fronts, rule, delta, paper_delta);
    if (!choice) continue;
    const auto rank = [](const FrontChoice& c) {
      return std::pair(-static_cast<int>(c.close()), c.size());
    };
    if (!best || rank(*choice) < rank(*best)) best = std::move(choice);
  }
  return best;
}

std::string fronts_table(const Results& results) {
  const Fronts fronts = read_fronts(results);
  std::string out = fmt::format(
      "The paper's rule is: by variance, β = 0, from the paper's start; its runs are those of "
      "`uci` and `magnetic-paths`.\n\n### As accurate as the paper's rule, with how many "
      "points\n\nOf the rules with "
      "one δ, β and way of choosing for all six sets, the one that comes within 0.01 of the "
      "paper's RMSE on most sets, and of those the one with the smallest models. M of M of the "
      "paper's rule, on the same folds; ✗ where it does not come within 0.01.\n\n{}",
      choice_table(fronts));
  std::vector<double> deltas;
  for (const auto& [at, sets] : fronts) deltas.push_back(at.second);
  std::ranges::sort(deltas, std::greater<>());
  const auto repeated = std::ranges::unique(deltas);
  deltas.erase(repeated.begin(), repeated.end());
  std::vector<std::string> sets = uci_names();
  sets.emplace_back("magnetic");
  for (const std::string& data : sets) {
    out += fmt::format("\n### {}\n\nFrom the paper's start:\n\n{}\nFrom the default start:\n\n{}",
                       data, set_table(fronts, data, FrontStart::paper, deltas),
                       set_table(fronts, data, FrontStart::out_of_the_box, deltas));
  }
  return out +
         "\nMeans over five folds; in brackets, over so many. Magnetic: µT, four paths one after "
         "another, tested on the fifth.\n";
}

}  // namespace ample::experiments
