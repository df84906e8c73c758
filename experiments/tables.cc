#include "tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "fronts_table.h"
#include "markdown_table.h"
#include "operating_point.h"
#include "paper_values.h"
#include "plan.h"
#include "protocol.h"
#include "time_left.h"

namespace ample::experiments {
namespace {

const std::vector<std::string> kMethods{"vips", "cv", "oips"};
constexpr const char* kNotRun = "not run";

std::vector<Run> runs_of(const std::string& experiment) {
  PlanFilter filter;
  filter.experiments = {experiment};
  filter.whole_sweep = true;
  return plan(filter);
}

std::string title_of(const Run& run) {
  if (run.method == "vips") return fmt::format("VIPS δ = {}", run.parameter);
  if (run.method == "cv") return fmt::format("CV η = {}", run.parameter);
  if (run.method == "oips") return fmt::format("OIPS ρ = {}", run.parameter);
  if (run.method == "fixed-greedy") return fmt::format("fixed M = {}", run.parameter);
  return "exact GP";
}

/// Of a run that is done; a part of one is no result.
std::vector<BatchResult> finished(const Results& results, const Run& run) {
  return results.seconds(run) ? results.batches(run) : std::vector<BatchResult>{};
}

/// M after one of the batches of a run.
std::string size_after(Index batch, const std::vector<BatchResult>& batches) {
  const auto found = std::ranges::find(batches, batch, &BatchResult::batch);
  if (found == batches.end()) return kNotRun;
  return fmt::format("{}{}", found->inducing, found->stop == "cap" ? " (cap)" : "");
}

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

// --- Figures 1 and 2, large: M or an error after each batch

std::string figure1_table(const Results& results) {
  MarkdownTable table({"scenario", "seed", "M after each of ten batches", "last RMSE"});
  for (const Run& run : runs_of("figure1")) {
    const std::vector<BatchResult> batches = finished(results, run);
    std::vector<std::string> sizes;
    for (const BatchResult& b : batches) sizes.push_back(fmt::format("{}", b.inducing));
    table.add({run.data, fmt::format("{}", run.fold), sizes.empty() ? kNotRun : join(sizes, " "),
               batches.empty() ? "" : fmt::format("{:.3f}", batches.back().rmse)});
  }
  return "M of VIPS, δ = 0.05; RMSE against the noiseless function on a grid over [0, 10], for the "
         "outliers [−5, 15].\n\n" +
         table.text();
}

std::string figure2a_table(const Results& results) {
  MarkdownTable table(
      {"method", "RMSE after batch 1", "2", "3", "4", "M after batch 1", "2", "3", "4"});
  std::map<std::string, std::vector<Run>> by_method;
  std::vector<std::string> order;
  for (const Run& run : runs_of("figure2a")) {
    if (!by_method.contains(title_of(run))) order.push_back(title_of(run));
    by_method[title_of(run)].push_back(run);
  }
  for (const std::string& method : order) {
    std::vector<double> errors(4, 0.0);
    std::vector<double> sizes(4, 0.0);
    int folds = 0;
    for (const Run& run : by_method[method]) {
      const std::vector<BatchResult> batches = finished(results, run);
      if (batches.size() != errors.size()) continue;
      ++folds;
      for (std::size_t b = 0; b < errors.size(); ++b) {
        errors[b] += batches[b].rmse;
        sizes[b] += static_cast<double>(batches[b].inducing);
      }
    }
    std::vector<std::string> row{method};
    for (const double e : errors) row.push_back(folds > 0 ? fmt::format("{:.3f}", e / folds) : "");
    for (const double m : sizes) row.push_back(folds > 0 ? fmt::format("{:.1f}", m / folds) : "");
    table.add(std::move(row));
  }
  return "Means over five seeds; RMSE against the noiseless function on the part of the grid that "
         "the stream has reached.\n\n" +
         table.text();
}

std::string figure2b_table(const Results& results) {
  MarkdownTable table({"method", "M", "RMSE", "seconds here", "seconds of selection",
                       "paper's seconds (RTX 6000)", "evaluations"});
  for (const Run& run : runs_of("figure2b")) {
    const std::vector<BatchResult> batches = finished(results, run);
    const auto paper = paper_naval_seconds(run.method, run.parameter);
    const std::string theirs = paper ? fmt::format("{}", *paper) : "";
    if (batches.empty()) {
      table.add({title_of(run), kNotRun, "", "", "", theirs, ""});
      continue;
    }
    double select = 0.0;
    double fit = 0.0;
    int evaluations = 0;
    for (const BatchResult& b : batches) {
      select += b.seconds_select;
      fit += b.seconds_fit;
      evaluations += b.evaluations;
    }
    table.add({title_of(run), fmt::format("{}", batches.back().inducing),
               fmt::format("{:.4f}", batches.back().rmse), fmt::format("{:.2f}", select + fit),
               fmt::format("{:.3f}", select), theirs, fmt::format("{}", evaluations)});
  }
  return "Training time of the whole stream, selection and fits.\n\n" + table.text();
}

std::string large_table(const Results& results) {
  MarkdownTable table({"scenario", "method", "M after batch 1", "10", "20", "30", "40", "50",
                       "RMSE", "noise model", "time"});
  for (const Run& run : runs_of("large")) {
    const std::vector<BatchResult> batches = finished(results, run);
    std::vector<std::string> row{run.data, title_of(run)};
    for (const Index batch : {1, 10, 20, 30, 40, 50}) row.push_back(size_after(batch, batches));
    if (const auto seconds = results.seconds(run)) {
      row.push_back(fmt::format("{:.4f}", batches.back().rmse));
      row.push_back(fmt::format("{:.4f}", batches.back().noise_rmse));
      row.push_back(duration_text(*seconds));
    }
    table.add(std::move(row));
  }
  return "50,000 points in 50 batches, f(x) = sin(x₁/2) + cos(x₂/2) + sin(x₃/2) with noise of "
         "standard deviation 0.2, below which no RMSE can be.\n\n" +
         table.text();
}

// --- The magnetic field

std::string magnetic_stream_table(const Results& results) {
  MarkdownTable table({"method", "", "M after batch 1", "5", "10", "15", "20", "RMSE", "time"});
  for (const Run& run : runs_of("magnetic-stream")) {
    const PaperMagnetic paper = paper_magnetic(run.method);
    std::vector<std::string> theirs{title_of(run), "paper"};
    for (const int m : paper.inducing) theirs.push_back(fmt::format("{}", m));
    theirs.push_back(fmt::format("{:.2f}", paper.rmse));
    table.add(std::move(theirs));
    const std::vector<BatchResult> batches = finished(results, run);
    std::vector<std::string> ours{"", "ours"};
    for (const Index batch : {1, 5, 10, 15, 20}) ours.push_back(size_after(batch, batches));
    if (const auto seconds = results.seconds(run)) {
      ours.push_back(fmt::format("{:.2f}", batches.back().rmse));
      ours.push_back(duration_text(*seconds));
    }
    table.add(std::move(ours));
  }
  return "Path 3 in 20 batches, tested on paths 1, 2, 4 and 5 (µT).\n\n" + table.text();
}

std::string magnetic_paths_table(const Results& results) {
  MarkdownTable table({"method", "", "after path 1", "2", "4", "5", "time"});
  for (const Run& run : runs_of("magnetic-paths")) {
    const std::vector<BatchResult> batches = finished(results, run);
    std::vector<std::string> sizes{title_of(run), "M"};
    std::vector<std::string> errors{"", "RMSE on path 3"};
    for (const BatchResult& b : batches) {
      sizes.push_back(size_after(b.batch, batches));
      errors.push_back(fmt::format("{:.2f}", b.rmse));
    }
    sizes.resize(6, kNotRun);
    errors.resize(6);
    if (const auto seconds = results.seconds(run)) sizes.push_back(duration_text(*seconds));
    table.add(std::move(sizes));
    table.add(std::move(errors));
  }
  return "One path a batch, tested on path 3 (µT). The paper gives figures only.\n\n" +
         table.text();
}

// --- UCI

std::string size_text(const Measured& m) {
  std::string text = m.folds > 1 ? fmt::format("{:.0f}({:.0f})", m.inducing, m.inducing_deviation)
                                 : fmt::format("{:.0f}", m.inducing);
  if (m.capped) text = "Max. " + text;
  if (m.folds < kFolds) text += fmt::format(", {} of {} folds", m.folds, kFolds);
  return text;
}

std::string percent_text(double percent) {
  return std::abs(percent) < 1000.0 ? fmt::format("{:.2f} %", percent)
                                    : fmt::format("{:.0f} %", percent);
}

/// How far from the exact GP, where that was run.
std::string percent_text(const Measured& m, Metric metric) {
  if (m.judged == 0) return "exact GP not run";
  std::string text = percent_text(m.percent(metric));
  if (m.judged < m.folds) text += fmt::format(", of {} folds", m.judged);
  return text;
}

std::string uci_table(const Results& results) {
  std::string out =
      "Means over folds after the last batch; M with its deviation. Percentages are the distance "
      "to "
      "the exact GP of the same fold, 100 % being the noise model's.\n";
  for (const std::string& data : uci_names()) {
    MarkdownTable table({"method", "M", "RMSE", "RMSE %", "NLPD", "NLPD %", "time of a fold"});
    int folds = 0;
    double rmse = 0.0;
    double nlpd = 0.0;
    double seconds = 0.0;
    for (const Run& run : runs_of("uci")) {
      if (run.data != data || run.method != "exact" || !results.seconds(run)) continue;
      const BatchResult last = results.last_batch(run).value();
      ++folds;
      rmse += last.rmse;
      nlpd += last.nlpd;
      seconds += *results.seconds(run);
    }
    if (folds > 0) {
      table.add({folds < kFolds ? fmt::format("exact GP, {} of {} folds", folds, kFolds)
                                : std::string("exact GP"),
                 "all", fmt::format("{:.4f}", rmse / folds), "0",
                 fmt::format("{:.4f}", nlpd / folds), "0", duration_text(seconds / folds)});
    }
    bool any = folds > 0;
    for (const std::string& method : kMethods) {
      for (const auto& [parameter, sets] : read_sweep(results, method)) {
        const auto found = sets.find(data);
        if (found == sets.end()) continue;
        any = true;
        const Measured& m = found->second;
        table.add(
            {title_of({"uci", data, method, parameter, 0}), size_text(m),
             fmt::format("{:.4f}", m.rmse), percent_text(m, Metric::rmse),
             fmt::format("{:.4f}", m.nlpd), percent_text(m, Metric::nlpd),
             m.seconds < 10.0 ? fmt::format("{:.1f} s", m.seconds) : duration_text(m.seconds)});
      }
    }
    out += fmt::format("\n### {}\n\n{}", data, any ? table.text() : "not run\n");
  }
  return out;
}

std::string splits_table(const Results& results) {
  constexpr int kSplits = 5;
  std::vector<std::string> head{"δ", "M paper", "NLPD % paper"};
  std::vector<Sweep> sweeps;
  for (int split = 0; split < kSplits; ++split) {
    head.push_back(fmt::format("{}split {}", split == 0 ? "NLPD % (RMSE %), " : "", split));
    std::vector<int> folds(kFolds);
    std::iota(folds.begin(), folds.end(), split * static_cast<int>(kFolds));
    sweeps.push_back(read_sweep(results, "vips", "uci-splits", folds));
  }
  head.emplace_back("M");
  MarkdownTable table(std::move(head));
  std::map<double, PaperCell> paper;
  for (const Criterion& c : criteria()) {
    const auto delta = paper_operating_point(c, "vips");
    const auto cell = paper_cell(c, "concrete", "vips");
    if (c.metric == Metric::nlpd && delta && cell) paper[*delta] = *cell;
  }
  for (const auto& [delta, cell] : paper) {
    std::vector<std::string> row{fmt::format("{}", delta),
                                 fmt::format("{:.0f}({:.0f})", cell.inducing, cell.deviation),
                                 percent_text(cell.percent)};
    double inducing = 0.0;
    int splits = 0;
    for (const Sweep& sweep : sweeps) {
      const auto found = sweep.find(delta);
      if (found == sweep.end()) {
        row.emplace_back(kNotRun);
        continue;
      }
      const Measured& m = found->second.at("concrete");
      row.push_back(
          fmt::format("{} ({})", percent_text(m, Metric::nlpd), percent_text(m, Metric::rmse)));
      inducing += m.inducing;
      ++splits;
      if (m.folds < kFolds) row.back() += fmt::format(", {} of {} folds", m.folds, kFolds);
    }
    row.push_back(splits > 0 ? fmt::format("{:.0f}", inducing / splits) : "");
    table.add(std::move(row));
  }
  return "Concrete with its rows shuffled into other batches and folds, five times; each number is "
         "a "
         "mean over five folds.\n\n" +
         table.text();
}

/// The paper's mean ± (2 std + 10 %).
bool within_band(const Measured& ours, const PaperCell& paper) {
  return std::abs(ours.inducing - paper.inducing) <= 2.0 * paper.deviation + 0.1 * paper.inducing;
}

/// Percentage points.
constexpr double kPercentBand = 3.0;

std::string criterion_text(const Criterion& c) {
  const char* const counts[] = {"no", "one", "two"};
  return fmt::format("{:.0f} % {}, {} outlier{}", c.percent, to_text(c.metric), counts[c.outliers],
                     c.outliers == 1 ? "" : "s");
}

/// For each data set the methods that meet the criterion with the smallest model.
template <class Cell>
std::map<std::string, int> wins(const Criterion& criterion, const std::vector<std::string>& sets,
                                const Cell& cell) {
  std::map<std::string, int> counts;
  for (const std::string& data : sets) {
    std::optional<double> smallest;
    std::string winner;
    for (const std::string& method : kMethods) {
      const std::optional<PaperCell> c = cell(data, method);
      if (!c || c->percent > criterion.percent) continue;
      if (!smallest || c->inducing < *smallest) {
        smallest = c->inducing;
        winner = method;
      }
    }
    if (smallest) ++counts[winner];
  }
  return counts;
}

/// The sweeps of all methods, and what the tables of operating points ask of them.
class Sweeps {
 public:
  explicit Sweeps(const Results& results) {
    for (const std::string& method : kMethods) sweeps_[method] = read_sweep(results, method);
  }

  /// The data sets that a method was run on: a point of its sweep counts if it has them all.
  [[nodiscard]] std::vector<std::string> sets_of(const std::string& method) const {
    std::vector<std::string> sets;
    for (const std::string& data : uci_names()) {
      const auto judged = [&](const auto& entry) {
        const auto found = entry.second.find(data);
        return found != entry.second.end() && found->second.judged > 0;
      };
      if (std::ranges::any_of(sweeps_.at(method), judged)) sets.push_back(data);
    }
    return sets;
  }

  /// Those that all methods were run on.
  [[nodiscard]] std::vector<std::string> common_sets() const {
    std::vector<std::string> common = uci_names();
    for (const std::string& method : kMethods) {
      const std::vector<std::string> sets = sets_of(method);
      std::erase_if(common, [&](const std::string& data) {
        return std::ranges::find(sets, data) == sets.end();
      });
    }
    return common;
  }

  [[nodiscard]] OperatingPoint point(const std::string& method, const Criterion& criterion,
                                     const std::vector<std::string>& sets) const {
    return operating_point(method, sweeps_.at(method), criterion, sets);
  }

  [[nodiscard]] std::optional<Measured> measured(const std::string& method,
                                                 std::optional<double> parameter,
                                                 const std::string& data) const {
    const Sweep& sweep = sweeps_.at(method);
    if (!parameter || !sweep.contains(*parameter)) return std::nullopt;
    const auto& sets = sweep.at(*parameter);
    const auto found = sets.find(data);
    const bool there = found != sets.end() && found->second.judged > 0;
    return there ? std::optional(found->second) : std::nullopt;
  }

 private:
  std::map<std::string, Sweep> sweeps_;
};

bool is_in_the_paper(const Criterion& c) {
  return c.metric != Metric::nlpd || c.percent != 5.0 || c.outliers != 0;
}

std::string points_table(const Sweeps& sweeps) {
  MarkdownTable table({"criterion", "δ paper", "δ ours", "η paper", "η ours", "ρ paper", "ρ ours"});
  for (const Criterion& c : criteria()) {
    std::vector<std::string> row{criterion_text(c)};
    for (const std::string& method : kMethods) {
      const auto paper = paper_operating_point(c, method);
      const OperatingPoint ours = sweeps.point(method, c, sweeps.sets_of(method));
      row.push_back(paper ? fmt::format("{}", *paper) : "–");
      row.push_back(ours.open        ? kNotRun
                    : ours.parameter ? fmt::format("{}", *ours.parameter)
                                     : "–");
    }
    table.add(std::move(row));
  }
  std::string out = "### Operating points\n\n" + table.text();
  const std::map<std::string, const char*> titles{{"vips", "VIPS"}, {"cv", "CV"}, {"oips", "OIPS"}};
  for (const std::string& method : kMethods) {
    const std::vector<std::string> sets = sweeps.sets_of(method);
    out += fmt::format("\n{} was judged on: {}.", titles.at(method),
                       sets.empty() ? kNotRun : join(sets, ", "));
  }
  return out +
         "\n“not run”: a parameter with smaller models may be accurate enough, but was not run on "
         "all of these sets.\n";
}

std::string criterion_table(const Sweeps& sweeps, const Criterion& c) {
  MarkdownTable table({"data", "method", "M paper", "M at the paper's point", "M at ours",
                       fmt::format("{} % paper", to_text(c.metric)), "at the paper's point",
                       "at ours", "M and % agree"});
  const auto mark = [&](double percent) {
    return (percent > c.percent ? "✗ " : "") + percent_text(percent);
  };
  for (const std::string& data : uci_names()) {
    for (const std::string& method : kMethods) {
      const auto paper = paper_cell(c, data, method);
      const auto paper_point = paper_operating_point(c, method);
      const OperatingPoint our_point = sweeps.point(method, c, sweeps.sets_of(method));
      const auto at_theirs = sweeps.measured(method, paper_point, data);
      const auto at_ours = sweeps.measured(method, our_point.settled(), data);
      std::string agree;
      if (paper && at_theirs) {
        const bool m = within_band(*at_theirs, *paper);
        const bool p = std::abs(at_theirs->percent(c.metric) - paper->percent) <= kPercentBand;
        agree = m && p ? "both" : m ? "M" : p ? "%" : "neither";
      }
      table.add({data, method,
                 paper ? paper->inducing == 7000
                             ? "Max. 7000"
                             : fmt::format("{:.0f}({:.0f})", paper->inducing, paper->deviation)
                       : "–",
                 at_theirs     ? size_text(*at_theirs)
                 : paper_point ? kNotRun
                               : "–",
                 at_ours                                 ? size_text(*at_ours)
                 : our_point.open || our_point.parameter ? kNotRun
                                                         : "–",
                 paper ? mark(paper->percent) : "–",
                 at_theirs ? mark(at_theirs->percent(c.metric)) : "",
                 at_ours ? mark(at_ours->percent(c.metric)) : "", agree});
    }
  }
  return fmt::format("\n### {}\n\n{}", criterion_text(c), table.text());
}

/// Where only some of the methods were run nobody can win, and no method is to be judged on more
/// data sets than the others: all on those that all were run on.
std::string wins_table(const Sweeps& sweeps) {
  const std::vector<std::string> common = sweeps.common_sets();
  MarkdownTable table({"criterion", "VIPS paper", "same sets", "ours", "CV paper", "same sets",
                       "ours", "OIPS paper", "same sets", "ours"});
  for (const Criterion& c : criteria()) {
    if (!is_in_the_paper(c)) continue;
    std::map<std::string, OperatingPoint> points;
    bool open = false;
    for (const std::string& method : kMethods) {
      points[method] = sweeps.point(method, c, common);
      open = open || points[method].open;
    }
    const auto in_paper = [&](const std::string& data, const std::string& method) {
      return paper_cell(c, data, method);
    };
    const auto here = [&](const std::string& data,
                          const std::string& method) -> std::optional<PaperCell> {
      const auto m = sweeps.measured(method, points[method].settled(), data);
      if (!m) return std::nullopt;
      return PaperCell{m->inducing, m->inducing_deviation, m->percent(c.metric)};
    };
    auto theirs = wins(c, uci_names(), in_paper);
    auto theirs_there = wins(c, common, in_paper);
    auto ours = wins(c, common, here);
    std::vector<std::string> row{criterion_text(c)};
    for (const std::string& method : kMethods) {
      const bool published = paper_operating_point(c, method).has_value();
      row.push_back(published ? fmt::format("{}", theirs[method]) : "–");
      row.push_back(published ? fmt::format("{}", theirs_there[method]) : "–");
      row.push_back(open                       ? kNotRun
                    : points[method].parameter ? fmt::format("{}", ours[method])
                                               : "–");
    }
    table.add(std::move(row));
  }
  return fmt::format(
      "\n### Wins: on how many data sets a method meets the criterion with the smallest model\n\n"
      "Of the paper on all six sets, and on those that all methods were run on here: {}. Ours on "
      "the latter, at the operating points for these sets. –: no operating point.\n\n{}",
      common.empty() ? "none" : join(common, ", "), table.text());
}

std::string operating_point_tables(const Results& results) {
  const Sweeps sweeps(results);
  std::string out = points_table(sweeps);
  for (const Criterion& c : criteria()) {
    if (is_in_the_paper(c)) out += criterion_table(sweeps, c);
  }
  return out + wins_table(sweeps);
}

}  // namespace

std::string table_of(const std::string& experiment, const Results& results) {
  if (experiment == "figure1") return figure1_table(results);
  if (experiment == "figure2a") return figure2a_table(results);
  if (experiment == "figure2b") return figure2b_table(results);
  if (experiment == "uci") return uci_table(results);
  if (experiment == "operating-point") return operating_point_tables(results);
  if (experiment == "uci-splits") return splits_table(results);
  if (experiment == "magnetic-paths") return magnetic_paths_table(results);
  if (experiment == "magnetic-stream") return magnetic_stream_table(results);
  if (experiment == "large") return large_table(results);
  if (experiment == "fronts") return fronts_table(results);
  throw std::logic_error("no experiment '" + experiment + "'");
}

std::string runs_as_csv(const Results& results) {
  std::string out =
      "experiment,data,method,parameter,fold,inducing,rmse,nlpd,noise_rmse,noise_nlpd,kernel,"
      "noise_variance,evaluations,seconds,inducing_per_batch\n";
  PlanFilter everything;
  everything.whole_sweep = true;
  for (const Run& run : plan(everything)) {
    const std::optional<double> seconds = results.seconds(run);
    if (!seconds) continue;
    const std::vector<BatchResult> batches = results.batches(run);
    const BatchResult& last = batches.back();
    int evaluations = 0;
    std::vector<std::string> sizes;
    for (const BatchResult& b : batches) {
      evaluations += b.evaluations;
      sizes.push_back(fmt::format("{}", b.inducing));
    }
    out += fmt::format("{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},\"{}\",{:.4g},{},{:.2f},{}\n",
                       run.experiment, run.data, run.method, run.parameter, run.fold, last.inducing,
                       last.rmse, last.nlpd, last.noise_rmse, last.noise_nlpd, last.kernel,
                       last.noise_variance, evaluations, *seconds, join(sizes, " "));
  }
  return out;
}

}  // namespace ample::experiments
