#include "fronts.h"

#include <stdexcept>

#include <fmt/format.h>

namespace ample::experiments {

std::string FrontRule::name() const {
  const std::string name =
      fmt::format("{}-{}-{}", start == Start::paper ? "paper" : "default",
                  choose == Vips::Choose::variance ? "variance" : "gain", beta);
  return cap == 0 ? name : fmt::format("{}-{}", name, cap);
}

bool FrontRule::is_the_papers() const { return *this == FrontRule{}; }

std::vector<FrontRule> front_rules(FrontRule::Start start) {
  std::vector<FrontRule> rules;
  for (const Vips::Choose choose : {Vips::Choose::variance, Vips::Choose::gain}) {
    for (const double beta : {0.0, 0.01, 0.05}) rules.push_back({start, choose, beta});
  }
  if (start == FrontRule::Start::out_of_the_box) {
    rules.push_back({start, Vips::Choose::gain, 0.05, 900});
  }
  return rules;
}

FrontRule front_rule(std::string_view name) {
  for (const auto start : {FrontRule::Start::paper, FrontRule::Start::out_of_the_box}) {
    for (const FrontRule& rule : front_rules(start)) {
      if (rule.name() == name) return rule;
    }
  }
  throw std::logic_error(fmt::format("no rule '{}'", name));
}

Job fronts_job(const Run& run, const std::filesystem::path& folder) {
  const FrontRule rule = front_rule(run.method);
  // The stream, its tests and the paper's start are those of the experiment it belongs to.
  const bool magnetic = run.data == "magnetic";
  const Run the_papers{magnetic ? "magnetic-paths" : "uci", run.data, "vips", run.parameter,
                       run.fold};
  Job job = magnetic ? magnetic_job(the_papers, folder) : uci_job(the_papers, folder);
  job.draw = nullptr;
  if (rule.start == FrontRule::Start::out_of_the_box) {
    const auto seed = job.options.seed;
    job.options = ContinualGPOptions::out_of_the_box();
    job.options.seed = seed;
  }
  SelectionSettings settings = job.options.selection.settings();
  settings["delta"] = run.parameter;
  settings["choose"] = static_cast<double>(rule.choose);
  if (rule.cap > 0) settings["max_inducing"] = static_cast<double>(rule.cap);
  job.options.selection = make_selection("vips", settings);
  job.options.prune = rule.beta;
  return job;
}

}  // namespace ample::experiments
