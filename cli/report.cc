#include "report.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "errors.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

std::string to_json_line(const BatchReport& batch, const std::optional<Score>& score) {
  Json line{{"batch", batch.batch},
            {"rows", batch.rows},
            {"rows_seen", batch.rows_seen},
            {"inducing", batch.inducing},
            {"inducing_added", batch.inducing_added},
            {"inducing_removed", batch.inducing_removed},
            {"stop", to_string(batch.stop)},
            {"optimum", or_null(batch.optimum)},
            {"lower_bound", or_null(batch.lower_bound)},
            {"noise_bound", or_null(batch.noise_bound)},
            {"threshold", or_null(batch.threshold)},
            {"gap", or_null(batch.gap)},
            {"elbo", batch.elbo},
            {"kernel", batch.kernel},
            {"noise_variance", batch.noise_variance},
            {"jitter", batch.jitter},
            {"refitted", batch.refitted},
            {"evaluations", batch.fit.evaluations},
            {"seconds_select", batch.seconds_select},
            {"seconds_fit", batch.seconds_fit}};
  if (score) {
    line["rmse"] = score->rmse;
    line["nlpd"] = score->nlpd;
  }
  return line.dump();
}

Report::Report(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    throw DataError(fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  }
}

Report::~Report() { std::fclose(file_); }

void Report::add(const BatchReport& batch, const std::optional<Score>& score) {
  const std::string line = to_json_line(batch, score) + '\n';
  if (std::fputs(line.c_str(), file_) < 0 || std::fflush(file_) != 0) {
    throw DataError(fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  }
}

}  // namespace ample::cli
