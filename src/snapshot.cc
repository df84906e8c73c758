#include "ample/snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ample/version.h"
#include "check.h"
#include "file_replacement.h"
#include "linalg.h"
#include "safetensors.h"
#include "visible_text.h"

namespace ample {
namespace {

constexpr std::string_view kFormat = "ample-model";
// 2 holds the factor of I + A too, which 1 left to be computed; 3 when a reservoir was last fitted;
// 4 what the past counts, and how surprising the latest rows were.
constexpr int kFormatVersion = 4;

constexpr std::string_view kStartPrefix = "start.";
constexpr std::string_view kSettingPrefix = "selection.";
constexpr std::string_view kNotePrefix = "note.";
constexpr const char* kBasePrefix = "base.";

// Far beyond any model, and far from overflow.
constexpr Index kLargestCount = Index{1} << 52;

constexpr std::string_view kScalingNone = "none";
constexpr std::string_view kScalingFirstBatch = "first-batch";
constexpr std::string_view kScalingGiven = "given";

constexpr std::string_view kClockRows = "rows";
constexpr std::string_view kClockTime = "time";

std::string_view scaling_text(const ContinualGPOptions& options) {
  if (std::holds_alternative<Scaling>(options.scaling)) return kScalingGiven;
  return std::get<Standardize>(options.scaling) == Standardize::none ? kScalingNone
                                                                     : kScalingFirstBatch;
}

// ---- model → file ------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(TensorFile& file) : file_(file) {}

  void text(const std::string& key, std::string_view value) { file_.metadata[key] = value; }
  void flag(const std::string& key, bool value) { text(key, value ? "true" : "false"); }
  // The shortest text that reads back to the same bits.
  template <class Number>
  void number(const std::string& key, Number value) {
    text(key, fmt::format("{}", value));
  }
  void matrix(const std::string& name, Matrix values) { file_.tensors[name] = {std::move(values)}; }
  void vector(const std::string& name, const Vector& values) { file_.tensors[name] = {values, 1}; }

 private:
  TensorFile& file_;
};

void write(Writer& out, const Hyperparameters& theta, std::string_view prefix) {
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  out.text(key("kernel"), theta.kernel.to_string());
  out.number(key("noise_variance"), theta.noise());
  out.number(key("noise_variance.lower"), theta.noise_variance.lower);
  out.number(key("noise_variance.upper"), theta.noise_variance.upper);
  out.flag(key("noise_variance.fixed"), theta.noise_variance.is_fixed);
}

void write(Writer& out, const ContinualGPOptions& options) {
  write(out, options.start, kStartPrefix);
  out.text("selection", options.selection.name());
  for (const auto& [name, value] : options.selection.settings()) {
    out.number(fmt::format("{}{}", kSettingPrefix, name), value);
  }
  out.flag("search_start", options.search_start);
  out.flag("find_kernel", options.find_kernel);
  out.flag("ard", options.ard);
  out.number("warm_up", options.warm_up);
  out.number("refit_rows", options.refit_rows);
  out.number("reservoir", options.reservoir);
  out.number("refit_seconds", options.refit_seconds);
  out.text("forget", to_string(options.forget.rule));
  out.text("forget.clock", options.forget.by_time() ? kClockTime : kClockRows);
  out.number("forget.half_life", options.forget.half_life);
  out.number("prune", options.prune);
  out.number("refit_every", options.refit_every);
  out.text("standardize", scaling_text(options));
  out.number("seed", options.seed);
  out.number("fit_tolerance", options.fit_tolerance);
  out.number("fit.max_evaluations", options.fit.max_evaluations);
  out.number("fit.gradient_tolerance", options.fit.gradient_tolerance);
  out.number("fit.relative_value_tolerance", options.fit.relative_value_tolerance);
  out.number("fit.absolute_value_tolerance", options.fit.absolute_value_tolerance);
  out.number("fit.memory", options.fit.memory);
  out.number("fit.max_step", options.fit.max_step);
}

void write(Writer& out, const Scaling& scaling) {
  out.vector("input_mean", scaling.input_mean);
  out.vector("input_scale", scaling.input_scale);
  out.number("target_mean", scaling.target_mean);
  out.number("target_scale", scaling.target_scale);
}

// L_D and w follow from A and c, but not to the last bit once they were updated point by point. F
// follows from them.
void write(Writer& out, const State& state, const std::string& prefix) {
  out.matrix(prefix + "Z", state.Z);
  out.matrix(prefix + "L", state.L);
  out.matrix(prefix + "A", state.A);
  out.vector(prefix + "c", state.c);
  out.matrix(prefix + "L_D", state.L_D);
  out.vector(prefix + "w", state.w);
  out.number(prefix + "jitter", state.jitter);
}

void write(Writer& out, const TargetStatistics& targets, const std::string& prefix) {
  out.number(prefix + "rows_seen", targets.count);
  out.number(prefix + "targets.weight", targets.weight);
  out.number(prefix + "targets.mean", targets.mean);
  out.number(prefix + "targets.m2", targets.m2);
}

void write(Writer& out, const Reservoir& reservoir) {
  if (reservoir.size() == 0) return;
  out.matrix("reservoir_X", reservoir.X);
  out.vector("reservoir_y", reservoir.y);
  out.number("reservoir.seen", reservoir.seen);
  out.number("reservoir.fitted", reservoir.fitted);
  out.number("reservoir.weight", reservoir.weight);
  if (reservoir.weighted) out.flag("reservoir.weighted", true);
}

void write(Writer& out, const ContinualGP::Pending& pending) {
  if (pending.X.rows() == 0) return;
  out.matrix("pending_X", pending.X);
  out.vector("pending_y", pending.y);
  if (pending.weights.size() > 0) out.vector("pending_weights", pending.weights);
  if (pending.since) out.number("pending.since", *pending.since);
  out.number("pending.known", pending.known);
  out.number("pending.recent", pending.recent);
  out.number("pending.recent_chi_squared", pending.recent_chi_squared);
  if (!pending.base) return;
  write(out, pending.base->state(), kBasePrefix);
  write(out, pending.base_targets, kBasePrefix);
}

void write(Writer& out, const Curvature& curvature) {
  if (curvature.pairs.empty()) return;
  const auto count = static_cast<Index>(curvature.pairs.size());
  const Index n = curvature.pairs.front().s.size();
  Matrix s(count, n);
  Matrix y(count, n);
  for (Index i = 0; i < count; ++i) {
    const Curvature::Pair& pair = curvature.pairs[static_cast<std::size_t>(i)];
    check_rows("save", "a step of the curvature", pair.s.size(), n, "as the first");
    check_rows("save", "a change of the curvature", pair.y.size(), n, "as the first");
    s.row(i) = pair.s.transpose();
    y.row(i) = pair.y.transpose();
  }
  out.matrix("curvature_s", std::move(s));
  out.matrix("curvature_y", std::move(y));
}

TensorFile to_file(const ContinualGP::Checkpoint& model, const Notes& notes) {
  TensorFile file;
  Writer out(file);
  out.text("format", kFormat);
  out.number("format_version", kFormatVersion);
  out.text("ample_version", version());
  write(out, model.options);
  write(out, model.theta, "");
  out.number("batches", model.batches);
  out.number("fitted_rows", model.fitted_rows);
  if (model.time) out.number("time", *model.time);
  write(out, model.targets, "");
  write(out, model.reservoir);
  write(out, model.pending);
  // What a model predicts while it warms up follows from the rows that it holds.
  if (model.predictor && !model.warming_up()) {
    write(out, model.predictor->state(), "");
    write(out, model.predictor->scaling());
  } else if (const auto* given = std::get_if<Scaling>(&model.options.scaling)) {
    write(out, *given);
  }
  write(out, model.curvature);
  for (const auto& [key, value] : notes) out.text(fmt::format("{}{}", kNotePrefix, key), value);
  return file;
}

// ---- file → model ------------------------------------------------------------------------------

/// A text from a file, fit for a message of one line.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return visible(text, kLongest);
}

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw ModelFileError(fmt::format(format, std::forward<Args>(args)...));
}

/// Takes texts and tensors by name. What is missing is an error, and so is what is left over.
class Reader {
 public:
  explicit Reader(TensorFile file) : file_(std::move(file)) {}

  std::string text(const std::string& key) {
    const auto node = file_.metadata.extract(key);
    if (node.empty()) reject("it lacks '{}', expected in a model file", key);
    return node.mapped();
  }

  bool flag(const std::string& key) {
    const std::string value = text(key);
    if (value != "true" && value != "false") {
      reject("{} is '{}', expected true or false", key, shown(value));
    }
    return value == "true";
  }

  double number(const std::string& key, double lowest = std::numeric_limits<double>::lowest(),
                double highest = std::numeric_limits<double>::max()) {
    return parse(key, text(key), lowest, highest);
  }
  template <class Integer = Index>
  Integer count(const std::string& key, Integer lowest, Integer highest) {
    return parse(key, text(key), lowest, highest);
  }

  /// All texts whose key starts with `prefix`, without it.
  std::map<std::string, std::string> texts(std::string_view prefix) {
    std::map<std::string, std::string> found;
    for (auto it = file_.metadata.lower_bound(std::string(prefix));
         it != file_.metadata.end() && it->first.starts_with(prefix);) {
      found[it->first.substr(prefix.size())] = it->second;
      it = file_.metadata.erase(it);
    }
    return found;
  }

  template <class Number>
  static Number parse(const std::string& key, const std::string& text, Number lowest,
                      Number highest) {
    Number value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    // Written so that a NaN fails too.
    const bool good = problem == std::errc() && stop == end && value >= lowest && value <= highest;
    if (!good)
      reject("{} is '{}', expected a number from {} to {}", key, shown(text), lowest, highest);
    return value;
  }

  [[nodiscard]] bool has_text(const std::string& key) const { return file_.metadata.contains(key); }
  [[nodiscard]] bool has_tensor(const std::string& name) const {
    return file_.tensors.contains(name);
  }
  Matrix matrix(const std::string& name) { return tensor(name, 2); }
  Vector vector(const std::string& name) { return tensor(name, 1); }

  void finish() const {
    if (!file_.metadata.empty()) {
      reject("it has '{}', expected no such text in a model file",
             shown(file_.metadata.begin()->first));
    }
    if (!file_.tensors.empty()) {
      reject("it has a tensor '{}', expected no such one in a model file",
             shown(file_.tensors.begin()->first));
    }
  }

 private:
  Matrix tensor(const std::string& name, int rank) {
    auto node = file_.tensors.extract(name);
    if (node.empty()) reject("it lacks the tensor {}, expected in a model file", name);
    const Tensor& tensor = node.mapped();
    if (tensor.rank != rank) {
      reject("{} has {} dimensions, expected {}", name, tensor.rank, rank);
    }
    check_finite("model file", name, tensor.values);
    return std::move(node.mapped().values);
  }

  TensorFile file_;
};

Kernel read_kernel(Reader& in, const std::string& key) {
  try {
    return Kernel::parse(in.text(key));
  } catch (const std::invalid_argument& error) {
    reject("{}: {}", key, error.what());
  }
}

Hyperparameters read_hyperparameters(Reader& in, std::string_view prefix) {
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  Hyperparameters theta{.kernel = read_kernel(in, key("kernel")),
                        .noise_variance = in.number(key("noise_variance"))};
  theta.noise_variance.lower = in.number(key("noise_variance.lower"));
  theta.noise_variance.upper = in.number(key("noise_variance.upper"));
  theta.noise_variance.is_fixed = in.flag(key("noise_variance.fixed"));
  theta.check(prefix.empty() ? "model" : "start");
  return theta;
}

SelectionMethod read_selection(Reader& in, const std::optional<SelectionMethod>& custom) {
  const std::string name = in.text("selection");
  SelectionSettings settings;
  for (const auto& [key, text] : in.texts(kSettingPrefix)) {
    settings[key] = Reader::parse(key, text, std::numeric_limits<double>::lowest(),
                                  std::numeric_limits<double>::max());
  }
  return custom ? *custom : make_selection(name, settings);
}

Forgetting read_forgetting(Reader& in, int format_version) {
  if (format_version < 4) {
    return in.flag("weigh_past") ? Forgetting::adaptive() : Forgetting::never();
  }
  const std::string rule = in.text("forget");
  const std::string clock = in.text("forget.clock");
  const double half_life = in.number("forget.half_life", 0.0);
  if (clock != kClockRows && clock != kClockTime) {
    reject("forget.clock is '{}', expected {} or {}", shown(clock), kClockRows, kClockTime);
  }
  Forgetting forget{
      .clock = clock == kClockTime ? Forgetting::Clock::time : Forgetting::Clock::rows,
      .half_life = half_life};
  for (const auto known :
       {Forgetting::Rule::never, Forgetting::Rule::adaptive, Forgetting::Rule::half_life}) {
    if (rule != to_string(known)) continue;
    forget.rule = known;
    return forget;
  }
  reject("forget is '{}', expected never, adaptive or half-life", shown(rule));
}

ContinualGPOptions read_options(Reader& in, const std::optional<SelectionMethod>& custom,
                                int format_version) {
  constexpr int kMost = std::numeric_limits<int>::max();
  ContinualGPOptions options;
  options.start = read_hyperparameters(in, kStartPrefix);
  options.selection = read_selection(in, custom);
  options.search_start = in.flag("search_start");
  if (format_version >= 2) {
    options.find_kernel = in.flag("find_kernel");
    if (format_version >= 4) options.ard = in.flag("ard");
    options.warm_up = in.count("warm_up", Index{0}, kLargestCount);
    options.refit_rows = in.count("refit_rows", Index{0}, kLargestCount);
    options.reservoir = in.count("reservoir", Index{0}, kLargestCount);
    options.forget = read_forgetting(in, format_version);
    if (format_version >= 4) options.refit_seconds = in.number("refit_seconds");
    options.prune = in.number("prune");
  }
  options.refit_every = in.count("refit_every", Index{0}, kLargestCount);
  options.seed = in.count<std::uint64_t>("seed", 0, std::numeric_limits<std::uint64_t>::max());
  options.fit_tolerance = in.number("fit_tolerance");
  options.fit.max_evaluations = in.count("fit.max_evaluations", 0, kMost);
  options.fit.gradient_tolerance = in.number("fit.gradient_tolerance");
  options.fit.relative_value_tolerance = in.number("fit.relative_value_tolerance");
  options.fit.absolute_value_tolerance = in.number("fit.absolute_value_tolerance");
  options.fit.memory = in.count("fit.memory", 0, kMost);
  options.fit.max_step = in.number("fit.max_step");
  return options;
}

Scaling read_scaling(Reader& in) {
  Scaling scaling;
  scaling.input_mean = in.vector("input_mean");
  scaling.input_scale = in.vector("input_scale");
  scaling.target_mean = in.number("target_mean");
  scaling.target_scale = in.number("target_scale");
  scaling.check(scaling.input_mean.size());
  return scaling;
}

void check_shape(const char* name, const MatrixRef& values, Index rows, Index cols) {
  if (values.rows() != rows || values.cols() != cols) {
    reject("{} is {}×{}, expected {}×{}", name, values.rows(), values.cols(), rows, cols);
  }
}

void check_triangle(const char* name, const Matrix& L) {
  for (Index j = 0; j < L.cols(); ++j) {
    if (!(L(j, j) > 0.0)) {
      reject("{} holds {} at {} of its diagonal, expected a positive number", name, L(j, j), j);
    }
    if ((L.col(j).head(j).array() != 0.0).any()) {
      reject("{} is not zero above its diagonal in column {}, expected a lower triangle", name, j);
    }
  }
}

/// L_D and w must follow from A and c: L_D L_Dᵀ = I + A, L_D w = c. Rounding, also that of many
/// updates, is relative to what each entry is a sum of.
void check_precision(const State& state) {
  constexpr double kTolerance = 1e-9;
  const Index M = state.size();
  Matrix D = state.A;
  D.diagonal().array() += 1.0;
  const Vector scale = D.diagonal().cwiseAbs().cwiseSqrt();
  outer(-1.0, state.L_D, 1.0, D);
  for (Index j = 0; j < M; ++j) {
    const auto most = kTolerance * scale[j] * scale.tail(M - j).array();
    if (!most.allFinite() || !(D.col(j).tail(M - j).array().abs() <= most).all()) {
      reject("L_D L_Dᵀ is not I + A in column {}, expected it to be its factor", j);
    }
  }
  const auto L_D = state.L_D.triangularView<Eigen::Lower>();
  const Vector rest = state.c - L_D * state.w;
  const double w = state.w.blueNorm();
  for (Index j = 0; j < M; ++j) {
    const double most = kTolerance * (std::abs(state.c[j]) + scale[j] * w);
    if (!std::isfinite(most) || !(std::abs(rest[j]) <= most)) {
      reject("L_D w is not c in row {}, expected w to be its solution", j);
    }
  }
}

/// L must be the factor that the kernel gives at Z: a file whose parts come from two models, each
/// part sound, must not load.
void check_prior(const State& state) {
  const Index M = state.size();
  Matrix K(M, M);
  state.kernel.evaluate_lower(state.Z, K);
  K.diagonal().array() += state.jitter;
  const double scale = K.diagonal().cwiseAbs().sum();
  outer(-1.0, state.L, 1.0, K);
  // Rounding leaves M ε; another processor's exp() a few ε more.
  constexpr double kTolerance = 1e-10;
  for (Index j = 0; j < M; ++j) {
    const auto difference = K.col(j).tail(M - j).array().abs();
    if (!std::isfinite(scale) || !(difference <= kTolerance * scale).all()) {
      reject("L Lᵀ is not the kernel's matrix at Z in column {}, expected it to be its factor", j);
    }
  }
}

/// Whose the contents are. Of a model at hand the factors need not be made again, which is all that
/// is O(M³) here: L is the kernel's by the way a state comes to be, and D has been factorised.
enum class ContentsOf { file, model };

State read_state(Reader& in, const Hyperparameters& theta, ContentsOf origin, int format_version,
                 const std::string& prefix) {
  Matrix Z = in.matrix(prefix + "Z");
  const Index M = Z.rows();
  theta.kernel.check_dimension(Z.cols());
  // The very kernel of θ, not a copy of equal value: the bound knows by it that θ has not moved.
  State state = State::empty(theta.kernel, theta.noise(), Z.cols());
  state.Z = std::move(Z);
  state.L = in.matrix(prefix + "L");
  state.A = in.matrix(prefix + "A");
  state.c = in.vector(prefix + "c");
  state.jitter = in.number(prefix + "jitter", 0.0);
  check_shape("L", state.L, M, M);
  check_shape("A", state.A, M, M);
  check_shape("c", state.c, M, 1);
  check_triangle("L", state.L);
  for (Index j = 0; j < M; ++j) {
    if ((state.A.col(j).array() != state.A.row(j).transpose().array()).any()) {
      reject("A is not symmetric in column {}", j);
    }
  }
  const bool has_factor = format_version >= 2;
  if (has_factor) {
    state.L_D = in.matrix(prefix + "L_D");
    state.w = in.vector(prefix + "w");
    check_shape("L_D", state.L_D, M, M);
    check_shape("w", state.w, M, 1);
    check_triangle("L_D", state.L_D);
    state.F = 0.5 * state.w.squaredNorm() - sum_log_diagonal(state.L_D);  // (1)
  }
  if (origin == ContentsOf::model) return state;
  check_prior(state);
  if (has_factor) {
    check_precision(state);
  } else if (!state.factorize()) {
    reject("I + A is not positive definite, expected a precision matrix");
  }
  return state;
}

Curvature read_curvature(Reader& in) {
  Curvature curvature;
  if (!in.has_tensor("curvature_s") && !in.has_tensor("curvature_y")) return curvature;
  const Matrix s = in.matrix("curvature_s");
  const Matrix y = in.matrix("curvature_y");
  check_shape("curvature_y", y, s.rows(), s.cols());
  for (Index i = 0; i < s.rows(); ++i) {
    curvature.pairs.push_back({s.row(i).transpose(), y.row(i).transpose()});
  }
  return curvature;
}

TargetStatistics read_targets(Reader& in, const std::string& prefix, int format_version) {
  TargetStatistics targets;
  targets.count = in.count(prefix + "rows_seen", Index{0}, kLargestCount);
  targets.weight = static_cast<double>(targets.count);
  if (format_version >= 4)
    targets.weight = in.number(prefix + "targets.weight", 0.0, targets.weight);
  targets.mean = in.number(prefix + "targets.mean");
  targets.m2 = in.number(prefix + "targets.m2", 0.0);
  return targets;
}

Reservoir read_reservoir(Reader& in, int format_version) {
  Reservoir reservoir;
  if (!in.has_tensor("reservoir_X")) return reservoir;
  reservoir.X = in.matrix("reservoir_X");
  reservoir.y = in.vector("reservoir_y");
  reservoir.seen = in.count("reservoir.seen", reservoir.size(), kLargestCount);
  if (format_version >= 3) {
    reservoir.fitted = in.count("reservoir.fitted", Index{0}, reservoir.seen);
  }
  reservoir.weight = static_cast<double>(reservoir.seen);
  if (format_version >= 4) {
    reservoir.weight = in.number("reservoir.weight", 0.0, reservoir.weight);
    if (in.has_text("reservoir.weighted")) reservoir.weighted = in.flag("reservoir.weighted");
  }
  check_shape("reservoir_y", reservoir.y, reservoir.size(), 1);
  if (reservoir.size() == 0) reject("reservoir_X has no rows, expected some");
  return reservoir;
}

/// The rows alone; what they come on top of is read where the scaling is known.
ContinualGP::Pending read_pending(Reader& in, int format_version) {
  ContinualGP::Pending pending;
  if (!in.has_tensor("pending_X")) return pending;
  pending.X = in.matrix("pending_X");
  pending.y = in.vector("pending_y");
  check_shape("pending_y", pending.y, pending.X.rows(), 1);
  if (pending.X.rows() == 0) reject("pending_X has no rows, expected some");
  if (in.has_tensor("pending_weights")) {
    pending.weights = in.vector("pending_weights");
    static_cast<void>(Sites(pending.y, pending.weights));  // throws unless they are weights
  }
  if (format_version < 4) return pending;
  const Index N = pending.X.rows();
  if (in.has_text("pending.since")) pending.since = in.number("pending.since");
  pending.known = in.count("pending.known", Index{0}, N);
  pending.recent = in.count("pending.recent", Index{0}, N);
  pending.recent_chi_squared = in.number("pending.recent_chi_squared", 0.0);
  return pending;
}

Snapshot read_snapshot(Reader in, const std::optional<SelectionMethod>& custom,
                       ContentsOf origin = ContentsOf::file) {
  if (const std::string format = in.text("format"); format != kFormat) {
    reject("the format is '{}', expected {}", shown(format), kFormat);
  }
  const int format_version = in.count("format_version", 1, std::numeric_limits<int>::max());
  const std::string ample_version = shown(in.text("ample_version"));
  if (format_version > kFormatVersion) {
    reject("format version {}, written by Ample {}; expected at most {}: this is Ample {}",
           format_version, ample_version, kFormatVersion, version());
  }
  ContinualGP::Checkpoint model{.options = read_options(in, custom, format_version),
                                .theta = read_hyperparameters(in, ""),
                                .predictor = nullptr,
                                .targets = read_targets(in, "", format_version),
                                .batches = in.count("batches", Index{0}, kLargestCount),
                                .curvature = read_curvature(in),
                                .reservoir = read_reservoir(in, format_version),
                                .pending = read_pending(in, format_version),
                                .fitted_rows = 0,
                                .time = {}};
  if (format_version >= 4) {
    model.fitted_rows = in.count("fitted_rows", Index{0}, kLargestCount);
    if (in.has_text("time")) model.time = in.number("time");
  } else {
    model.fitted_rows = std::min(model.reservoir.size(), model.targets.count);
  }
  const std::string scaling = in.text("standardize");
  if (scaling == kScalingFirstBatch) {
    model.options.scaling = Standardize::first_batch;
  } else if (scaling != kScalingNone && scaling != kScalingGiven) {
    reject("standardize is '{}', expected {}, {} or {}", shown(scaling), kScalingNone,
           kScalingFirstBatch, kScalingGiven);
  }
  // Rows that are not believed are only counted.
  model.pending.base_targets.count =
      model.pending.X.rows() > 0 ? model.targets.count - model.pending.X.rows() : 0;
  const bool has_base = in.has_tensor(kBasePrefix + std::string("Z"));
  const bool warming_up = model.pending.X.rows() > 0 && !in.has_tensor("Z");
  if (model.batches > 0 && !warming_up) {
    State state = read_state(in, model.theta, origin, format_version, "");
    model.predictor = std::make_shared<const Predictor>(std::move(state), read_scaling(in));
    if (has_base) {
      model.pending.base = std::make_shared<const Predictor>(
          read_state(in, model.theta, origin, format_version, kBasePrefix),
          model.predictor->scaling());
      model.pending.base_targets = read_targets(in, kBasePrefix, format_version);
    }
    if (scaling == kScalingGiven) model.options.scaling = model.predictor->scaling();
  } else if (scaling == kScalingGiven) {
    model.options.scaling = read_scaling(in);
  }
  Notes notes = in.texts(kNotePrefix);
  in.finish();
  return {.model = ContinualGP(std::move(model)),
          .notes = std::move(notes),
          .format_version = format_version,
          .ample_version = ample_version};
}

// ---- bytes and files ---------------------------------------------------------------------------

constexpr const char* kBytesName = "model bytes";

[[noreturn]] void cannot(const char* what, const std::string& path) {
  throw ModelFileError(fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

void read_exactly(const std::string& path, int descriptor, char* into, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(descriptor, into, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("read", path);
    if (count == 0) reject("{}: truncated while it was read: {} bytes less", path, size);
    into += count;
    size -= static_cast<std::size_t>(count);
  }
}

/// The bytes of what begins as a model file does: a large file of another kind is not read.
std::string read_file(const std::string& path) {
  // Not to wait for a writer if the path is a pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) cannot("open", path);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) cannot("read", path);
  if (S_ISDIR(status.st_mode)) reject("{}: is a directory, expected a model file", path);
  if (!S_ISREG(status.st_mode)) reject("{}: is not a regular file, expected a model file", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string bytes(std::min(size, kTensorsStart), '\0');
  read_exactly(path, file.get(), bytes.data(), bytes.size());
  try {
    check_start_of_tensors(bytes, size);
    const std::size_t begin = bytes.size();
    bytes.resize(size);
    read_exactly(path, file.get(), bytes.data() + begin, size - begin);
  } catch (const ModelFileError& error) {
    reject("{}: {}", path, error.what());
  } catch (const std::bad_alloc&) {
    reject("{}: too large for the memory", path);
  }
  return bytes;
}

/// A method of the user's own is not the one that the file names.
struct WrongMethod {
  std::string stored;
};

/// `name` is what messages call the bytes.
Snapshot read_bytes(std::string_view bytes, const std::string& name,
                    const std::optional<SelectionMethod>& custom) {
  try {
    TensorFile file = tensors_from_bytes(bytes);
    const auto stored = file.metadata.find("selection");
    if (custom && stored != file.metadata.end() && stored->second != custom->name()) {
      throw WrongMethod{shown(stored->second)};
    }
    return read_snapshot(Reader(std::move(file)), custom);
  } catch (const WrongMethod& wrong) {  // the caller's mistake; every other is the file's
    invalid("load: the selection method is '{}', but must be '{}' as in {}", custom->name(),
            wrong.stored, name);
  } catch (const std::invalid_argument& error) {
    throw ModelFileError(fmt::format("{}: {}", name, error.what()));
  } catch (const NumericalError& error) {  // the rows that it holds
    throw ModelFileError(fmt::format("{}: {}", name, error.what()));
  } catch (const ModelFileError& error) {
    throw ModelFileError(fmt::format("{}: {}", name, error.what()));
  } catch (const std::bad_alloc&) {
    throw ModelFileError(fmt::format("{}: too large for the memory", name));
  }
}

Snapshot load_file(const std::string& path, const std::optional<SelectionMethod>& custom) {
  return read_bytes(read_file(path), path, custom);
}

/// Whether a method of the library has that name.
bool is_known(const std::string& selection) {
  try {
    static_cast<void>(make_selection(selection));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

std::string to_bytes(const ContinualGP& model, const Notes& notes) {
  const std::shared_ptr<const ContinualGP::Checkpoint> checkpoint = model.checkpoint();
  const TensorFile file = to_file(*checkpoint, notes);
  // What could not be loaded again must not replace a file that could. A method of the user's own
  // is not in the file, so its name is all that is checked.
  const SelectionMethod& selection = checkpoint->options.selection;
  std::optional<SelectionMethod> custom;
  if (!is_known(selection.name())) custom = selection;
  try {
    static_cast<void>(read_snapshot(Reader(file), custom, ContentsOf::model));
  } catch (const ModelFileError& error) {
    invalid("save: {}", error.what());
  } catch (const std::invalid_argument& error) {
    invalid("save: {}", error.what());
  }
  return tensors_to_bytes(file);
}

ContinualGP from_bytes(std::string_view bytes) { return snapshot_from_bytes(bytes).model; }

ContinualGP from_bytes(std::string_view bytes, const SelectionMethod& selection) {
  return read_bytes(bytes, kBytesName, selection).model;
}

Snapshot snapshot_from_bytes(std::string_view bytes) {
  return read_bytes(bytes, kBytesName, std::nullopt);
}

void save(const ContinualGP& model, const std::string& path, const Notes& notes) {
  const std::string bytes = to_bytes(model, notes);
  try {
    FileReplacement file(path);
    file.write(bytes);
    file.commit();
  } catch (const FileError& error) {
    throw ModelFileError(error.what());
  }
}

ContinualGP load(const std::string& path) { return load_file(path, std::nullopt).model; }

ContinualGP load(const std::string& path, const SelectionMethod& selection) {
  return load_file(path, selection).model;
}

Snapshot load_snapshot(const std::string& path) { return load_file(path, std::nullopt); }

}  // namespace ample
