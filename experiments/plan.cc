#include "plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fronts.h"
#include "protocol.h"

namespace ample::experiments {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

/// The six machine hours that the committed results took; or the rest of the paper's sweep, days.
enum class Part { recorded, sweep };

/// Every combination of its members is a run.
struct Line {
  const char* experiment;
  Names data;
  std::string method;
  Values parameters;
  std::vector<int> folds;
  Part part;
};

const std::vector<Line>& lines() {
  using enum Part;
  // The paper gives ranges, and of the values in them only those that became operating points.
  static const Values deltas{0.2, 0.14, 0.12, 0.095, 0.065, 0.05, 0.035, 0.02, 0.015, 0.005};
  static const Values etas{0.6, 0.5, 0.13, 0.1, 0.07, 0.06, 0.025, 0.005, 0.001};
  static const Values rhos{0.845, 0.93, 0.935, 0.95, 0.955, 0.96, 0.975};
  static const std::vector<int> all{0, 1, 2, 3, 4};
  static const std::vector<int> one{0};
  static const std::vector<int> others{1, 2, 3, 4};
  static const std::vector<int> five_splits = [] {
    std::vector<int> folds(25);
    std::iota(folds.begin(), folds.end(), 0);
    return folds;
  }();
  static const Values nlpd_deltas{0.05, 0.02, 0.015, 0.005};
  static const Names three{"concrete", "skillcraft", "naval"};
  static const Names four{"concrete", "skillcraft", "naval", "elevators"};
  static const Names scenarios{"growing-domain", "fixed-domain", "outliers"};
  static const Values exact{0.0};

  // clang-format off
  static const std::vector<Line> table{
      // experiment       data                    method          parameters     folds   part
      {"figure1",         scenarios,              "vips",         {0.05},        all,    recorded},

      {"figure2a",        {"synthetic"},          "exact",        exact,         all,    recorded},
      {"figure2a",        {"synthetic"},          "fixed-greedy", {10, 20, 30},  all,    recorded},
      {"figure2a",        {"synthetic"},          "vips",         {0.05},        all,    recorded},

      {"figure2b",        {"naval"},              "vips",         {0.05},        one,    recorded},
      {"figure2b",        {"naval"},              "fixed-greedy", {100, 1000},   one,    recorded},

      {"uci",             {"concrete", "skillcraft", "kin8nm"}, "exact", exact,  all,    recorded},
      {"uci",             four,                   "vips",         deltas,        all,    recorded},
      {"uci",             three,                  "oips",         rhos,          all,    recorded},
      {"uci",             three,                  "cv",           etas,          all,    recorded},
      {"uci",             {"elevators"},          "oips",         rhos,          one,    recorded},
      {"uci",             {"bike", "kin8nm"},     "vips",         deltas,        one,    recorded},
      {"uci",             {"bike", "kin8nm"},     "vips",         {0.2, 0.095},  others, recorded},
      {"uci",             {"bike"},               "vips",         {0.02},        others, recorded},
      {"uci",             {"naval", "elevators"}, "exact",        exact,         all,    recorded},
      {"uci",             {"bike"},               "exact",        exact,         one,    recorded},
      {"uci",             {"elevators"},          "cv",           etas,          one,    recorded},
      {"uci",             {"bike"},               "exact",        exact,         others, sweep},
      {"uci",             {"bike", "kin8nm"},     "vips",         deltas,        others, sweep},
      {"uci",             {"elevators"},          "oips",         rhos,          others, sweep},
      {"uci",             {"bike", "kin8nm"},     "oips",         rhos,          all,    sweep},
      {"uci",             {"elevators"},          "cv",           etas,          others, sweep},
      {"uci",             {"bike", "kin8nm"},     "cv",           etas,          all,    sweep},

      {"uci-splits",      {"concrete"},           "exact",        exact,         five_splits, recorded},
      {"uci-splits",      {"concrete"},           "vips",         nlpd_deltas,   five_splits, recorded},

      {"magnetic-paths",  {"magnetic"},           "vips",         {kDelta},      one,    recorded},
      {"magnetic-paths",  {"magnetic"},           "oips",         {kRho},        one,    recorded},
      {"magnetic-paths",  {"magnetic"},           "cv",           {kEta},        one,    recorded},

      {"magnetic-stream", {"magnetic"},           "vips",         {kDelta},      one,    recorded},
      {"magnetic-stream", {"magnetic"},           "oips",         {kRho},        one,    recorded},
      {"magnetic-stream", {"magnetic"},           "cv",           {kEta},        one,    recorded},

      {"large",           scenarios,              "vips",         {kDelta},      one,    recorded},
      {"large",           scenarios,              "oips",         {kRho},        one,    recorded},
      {"large",           scenarios,              "cv",           {kEta},        one,    recorded},
  };
  // clang-format on
  return table;
}

/// Every rule of the fronts on five folds, the paper's own where `uci` does not have it. From the
/// paper's start the large sets have fewer δ: the rest takes days.
std::vector<Line> front_lines() {
  using enum Part;
  using enum FrontRule::Start;
  static const std::vector<int> all{0, 1, 2, 3, 4};
  static const std::vector<int> one{0};
  static const Names small{"concrete", "skillcraft", "naval"};
  static const Names large{"elevators", "bike", "kin8nm"};
  static const Values deltas{0.2, 0.14, 0.095, 0.065, 0.035, 0.02};
  static const Values two{0.095, 0.035};
  static const Values five{0.3, 0.2, 0.14, 0.095, 0.035};
  std::vector<Line> lines;
  const auto add = [&](const FrontRule& rule, const Names& data, const Values& parameters,
                       const std::vector<int>& folds, Part part) {
    lines.push_back({"fronts", data, rule.name(), parameters, folds, part});
  };
  for (const FrontRule& rule : front_rules(paper)) {
    add(rule, {"magnetic"}, deltas, one, recorded);
    if (rule.is_the_papers()) continue;
    add(rule, small, deltas, all, recorded);
    add(rule, {"elevators"}, {0.2, 0.095, 0.035, 0.02}, all, recorded);
    add(rule, {"bike"}, {0.2, 0.14, 0.095}, all, recorded);
    add(rule, {"kin8nm"}, {0.2}, all, recorded);
    add(rule, large, deltas, all, sweep);
  }
  for (const FrontRule& rule : front_rules(out_of_the_box)) {
    if (rule.cap > 0) {  // of the six sets, a cap is reached on one
      add(rule, uci_names(), {0.3, 0.2, 0.12}, all, recorded);
      continue;
    }
    // That of the estimators, and beside it one without pruning and one that chooses by variance.
    const bool by_gain = rule.choose == Vips::Choose::gain;
    const bool ours = by_gain && rule.beta == 0.05;
    const bool differs_in_one = by_gain ? rule.beta == 0.0 : rule.beta == 0.05;
    add(rule, uci_names(), ours ? five : two, all, ours || differs_in_one ? recorded : sweep);
    add(rule, {"magnetic"}, {0.035}, one, ours ? recorded : sweep);
    add(rule, uci_names(), deltas, all, sweep);
    add(rule, {"magnetic"}, deltas, one, sweep);
  }
  return lines;
}

std::vector<Line> all_lines() {
  std::vector<Line> all = lines();
  const std::vector<Line> fronts = front_lines();
  all.insert(all.end(), fronts.begin(), fronts.end());
  return all;
}

template <class T>
bool passes(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

}  // namespace

std::string Run::key() const {
  return fmt::format("{}/{}/{}/{}/{}", experiment, data, method, parameter, fold);
}

const std::vector<std::string>& experiment_names() {
  static const Names names{"figure1",         "figure2a",   "figure2b",       "uci",
                           "operating-point", "uci-splits", "magnetic-paths", "magnetic-stream",
                           "large",           "fronts"};
  return names;
}

std::vector<Run> plan(const PlanFilter& filter) {
  std::vector<Run> runs;
  std::set<std::string> planned;  // what is recorded is not a part of the rest
  for (const Line& line : all_lines()) {
    if (line.part == Part::sweep && !filter.whole_sweep) continue;
    if (!passes<std::string>(filter.experiments, line.experiment)) continue;
    if (!passes<std::string>(filter.methods, line.method)) continue;
    for (const double parameter : line.parameters) {
      for (const std::string& data : line.data) {
        for (const int fold : line.folds) {
          if (!passes(filter.data, data) || !passes(filter.parameters, parameter) ||
              !passes(filter.folds, fold)) {
            continue;
          }
          Run run{line.experiment, data, line.method, parameter, fold};
          if (planned.insert(run.key()).second) runs.push_back(std::move(run));
        }
      }
    }
  }
  return runs;
}

std::optional<Run> find_run(const std::string& key) {
  static const std::map<std::string, Run> by_key = [] {
    PlanFilter everything;
    everything.whole_sweep = true;
    std::map<std::string, Run> runs;
    for (Run& run : plan(everything)) runs.emplace(run.key(), std::move(run));
    return runs;
  }();
  const auto found = by_key.find(key);
  return found == by_key.end() ? std::nullopt : std::optional(found->second);
}

bool is_timing(const std::string& experiment) { return experiment == "figure2b"; }

}  // namespace ample::experiments
