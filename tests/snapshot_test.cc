#include "ample/snapshot.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ample/version.h"
#include "safetensors.h"
#include "support/paths.h"
#include "support/random.h"

namespace ample {
namespace {

namespace fs = std::filesystem;
using testing::Random;

Batch some_batch(Random& random, Index rows, Index D) {
  Batch batch{random.uniform(rows, D, -2.0, 2.0), Vector(rows)};
  for (Index i = 0; i < rows; ++i) {
    batch.y[i] = std::sin(2.0 * batch.X(i, 0)) + 0.1 * random.normal();
  }
  return batch;
}

/// Every takes every tenth row: a method that the library does not know.
struct EveryTenth {
  static Selection select(const SelectionProblem& p) {
    const Index added = (p.X.rows() + 9) / 10;
    Selection s;
    s.Z.resize(p.old.size() + added, p.X.cols());
    s.Z.topRows(p.old.size()) = p.old.Z;
    for (Index i = 0; i < added; ++i) s.Z.row(p.old.size() + i) = p.X.row(10 * i);
    s.added = added;
    return s;
  }
  static std::string name() { return "every-tenth"; }
};

class Snapshots : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is such a folder: ten thousand files need no disk.
    const fs::path memory = "/dev/shm";
    const fs::path parent = fs::is_directory(memory) ? memory : fs::temp_directory_path();
    std::string name = (parent / "ample-snapshot-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = (folder_ / "model.ample").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void store(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  /// What load() says of the file, without its name; empty if it loads.
  [[nodiscard]] std::string load_error() const {
    try {
      static_cast<void>(load(path_));
      return "";
    } catch (const ModelFileError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message.substr(std::min(message.size(), path_.size() + 2));
    }
  }

  /// What load() says once a sound file has been changed by someone who can also do checksums.
  [[nodiscard]] std::string forgery_error(const std::function<void(TensorFile&)>& change) const {
    save(small_model(), path_);
    TensorFile file = tensors_from_bytes(bytes_of(path_));
    change(file);
    store(tensors_to_bytes(file));
    return load_error();
  }

  static ContinualGP small_model() {
    Random random(7);
    ContinualGPOptions options;
    options.scaling = Standardize::first_batch;
    ContinualGP gp(options);
    for (int i = 0; i < 2; ++i) {
      const Batch batch = some_batch(random, 40, 2);
      gp.observe(batch.X, batch.y);
    }
    return gp;
  }

  fs::path folder_;
  std::string path_;
};

void expect_same_bits(const MatrixRef& a, const MatrixRef& b, const char* what) {
  ASSERT_EQ(a.rows(), b.rows()) << what;
  ASSERT_EQ(a.cols(), b.cols()) << what;
  EXPECT_TRUE((a.array() == b.array()).all()) << what;
}

void expect_same_bits(const ContinualGP& a, const ContinualGP& b) {
  EXPECT_EQ(a.batches(), b.batches());
  EXPECT_EQ(a.rows_seen(), b.rows_seen());
  EXPECT_EQ(a.kernel().to_string(), b.kernel().to_string());
  EXPECT_EQ(a.noise_variance(), b.noise_variance());
  EXPECT_EQ(a.checkpoint()->targets.mean, b.checkpoint()->targets.mean);
  EXPECT_EQ(a.checkpoint()->targets.m2, b.checkpoint()->targets.m2);
  ASSERT_EQ(a.size(), b.size());
  if (a.batches() == 0) return;
  const State& s = a.checkpoint()->predictor->state();
  const State& t = b.checkpoint()->predictor->state();
  expect_same_bits(s.Z, t.Z, "Z");
  expect_same_bits(s.L, t.L, "L");
  expect_same_bits(s.A, t.A, "A");
  expect_same_bits(s.c, t.c, "c");
  expect_same_bits(s.L_D, t.L_D, "L_D");
  expect_same_bits(s.w, t.w, "w");
  EXPECT_EQ(s.F, t.F);
  EXPECT_EQ(s.jitter, t.jitter);
  EXPECT_EQ(s.noise_variance, t.noise_variance);
}

struct Variant {
  const char* name;
  std::function<ContinualGPOptions()> options;
};

class SavedModels : public Snapshots, public ::testing::WithParamInterface<Variant> {};

// Save → load → observe against not having saved, at every batch of a stream.
TEST_P(SavedModels, GoOnAsIfTheyHadNeverStopped) {
  Random random(11);
  ContinualGP stays(GetParam().options());
  ContinualGP comes_and_goes(GetParam().options());
  for (int i = 0; i < 4; ++i) {
    save(comes_and_goes, path_);
    comes_and_goes = load(path_);
    expect_same_bits(stays, comes_and_goes);
    const Batch batch = some_batch(random, 30 + 5 * i, 2);
    const BatchReport a = stays.observe(batch.X, batch.y);
    const BatchReport b = comes_and_goes.observe(batch.X, batch.y);
    EXPECT_EQ(a.elbo, b.elbo) << "batch " << i;
    EXPECT_EQ(a.fit.evaluations, b.fit.evaluations) << "batch " << i;
    EXPECT_EQ(a.inducing_added, b.inducing_added) << "batch " << i;
    expect_same_bits(stays, comes_and_goes);
  }
  const Matrix X = random.normal(20, 2);
  expect_same_bits(stays.predict(X).mean, comes_and_goes.predict(X).mean, "mean");
  expect_same_bits(stays.predict(X).variance, comes_and_goes.predict(X).variance, "variance");
  expect_same_bits(stays.sample(X, 2, 5), comes_and_goes.sample(X, 2, 5), "sample");
}

ContinualGPOptions with_selection(SelectionMethod selection) {
  ContinualGPOptions options;
  options.selection = std::move(selection);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    All, SavedModels,
    ::testing::Values(
        Variant{"Defaults", [] { return ContinualGPOptions{}; }},
        Variant{"FirstBatchScaling",
                [] {
                  ContinualGPOptions options;
                  options.scaling = Standardize::first_batch;
                  return options;
                }},
        Variant{"GivenScaling",
                [] {
                  ContinualGPOptions options;
                  options.scaling = Scaling{Vector{{0.1, 0.2}}, Vector{{1.1, 0.7}}, 0.3, 2.0};
                  return options;
                }},
        // Between refits the bound reuses L, which it may only do with the very kernel of before.
        Variant{"RefitEveryThird",
                [] {
                  ContinualGPOptions options;
                  options.search_start = true;
                  options.refit_every = 3;
                  return options;
                }},
        Variant{"CompositeKernelWithBoundsAndFixedParts",
                [] {
                  ContinualGPOptions options;
                  options.start.kernel = Kernel::parse(
                      "constant(1 in [0.1, 10]) + 0.5 * matern52(variance=1 fixed, "
                      "lengthscale=[1, 2]) * rq(dims=[1]) + polynomial(degree=2)^2");
                  options.start.noise_variance = Positive(0.01).within(0.001, 0.1);
                  return options;
                }},
        Variant{"FixedNoise",
                [] {
                  ContinualGPOptions options;
                  options.start.noise_variance = Positive(0.02).within(1e-5, 1).fixed();
                  options.fit.memory = 3;
                  options.fit.max_evaluations = 7;
                  options.fit_tolerance = 0.0;
                  return options;
                }},
        Variant{"VipsOverOldAndBatch",
                [] {
                  return with_selection(Vips{.delta = 0.1,
                                             .pool = Vips::Pool::old_and_batch,
                                             .reference = Vips::Reference::optimum,
                                             .max_inducing = 15});
                }},
        Variant{"ConditionalVariance",
                [] { return with_selection(ConditionalVariance{.eta = 0.7}); }},
        Variant{"OipsWithSeed",
                [] {
                  ContinualGPOptions options = with_selection(Oips{.rho = 0.8, .max_inducing = 20});
                  options.seed = std::numeric_limits<std::uint64_t>::max() - 3;
                  return options;
                }},
        Variant{"FixedGreedy", [] { return with_selection(FixedGreedy{.size = 12}); }},
        Variant{"FixedGradient", [] { return with_selection(FixedGradient{.size = 6}); }}),
    [](const auto& param) { return std::string(param.param.name); });

// Factorisations of this size work in blocks, which small ones do not.
TEST_F(Snapshots, LargeModelsAreTheSameBitsToo) {
  Random random(3);
  ContinualGPOptions options;
  options.selection = FixedGreedy{.size = 400};
  options.start.kernel = Matern12{.variance = 1.0, .lengthscale = 0.3};
  options.refit_every = 0;
  ContinualGP gp(options);
  const Batch first = some_batch(random, 500, 2);
  gp.observe(first.X, first.y);
  save(gp, path_);
  ContinualGP again = load(path_);
  expect_same_bits(gp, again);
  const Batch second = some_batch(random, 300, 2);
  gp.observe(second.X, second.y);
  again.observe(second.X, second.y);
  expect_same_bits(gp, again);
}

TEST_F(Snapshots, EqualModelsGiveEqualFiles) {
  save(small_model(), path_, {{"who", "me"}});
  const std::string first = bytes_of(path_);
  save(small_model(), path_, {{"who", "me"}});
  EXPECT_EQ(bytes_of(path_), first);
  save(small_model(), path_, {{"who", "you"}});
  EXPECT_NE(bytes_of(path_), first);
}

TEST_F(Snapshots, NotesAndVersionsComeBack) {
  const Notes notes{{"inputs", "[\"a\",\"größe\"]"}, {"", "empty key"}, {"start.kernel", "x"}};
  save(small_model(), path_, notes);
  const Snapshot snapshot = load_snapshot(path_);
  EXPECT_EQ(snapshot.notes, notes);
  EXPECT_EQ(snapshot.format_version, 4);
  EXPECT_EQ(snapshot.ample_version, version());
  EXPECT_THROW(save(small_model(), path_, {{"bad", "\xFF"}}), std::invalid_argument);
  EXPECT_EQ(load_snapshot(path_).notes, notes);
}

TEST_F(Snapshots, AMethodOfTheUsersOwnIsGivenAgain) {
  Random random(5);
  ContinualGP gp(with_selection(EveryTenth{}));
  const Batch batch = some_batch(random, 30, 1);
  gp.observe(batch.X, batch.y);
  save(gp, path_);
  EXPECT_EQ(load_error(),
            "selection: unknown method 'every-tenth', expected vips, cv, oips, fixed-greedy or "
            "fixed-gradient");
  EXPECT_THROW(static_cast<void>(load(path_, Vips{})), std::invalid_argument);
  ContinualGP again = load(path_, EveryTenth{});
  const Batch next = some_batch(random, 20, 1);
  gp.observe(next.X, next.y);
  again.observe(next.X, next.y);
  expect_same_bits(gp, again);
}

TEST_F(Snapshots, WhatCouldNotBeLoadedIsNotSaved) {
  save(small_model(), path_);
  const std::string before = bytes_of(path_);
  const auto refuse = [&](const ContinualGPOptions& options, const std::string& part) {
    try {
      save(ContinualGP(options), path_);
      ADD_FAILURE() << "saved, expected a complaint of " << part;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("save: ")) << error.what();
    }
    EXPECT_EQ(bytes_of(path_), before);
  };
  ContinualGPOptions options;
  for (int i = 0; i < 1001; ++i) {
    options.start.kernel = i == 0 ? Kernel(Constant{}) : options.start.kernel + Constant{};
  }
  refuse(options, "more than 1000 kernels");
}

/// Rows of a sequence that anybody can repeat.
Batch golden_rows(Index first, Index count) {
  Batch rows{Matrix(count, 2), Vector(count)};
  for (Index i = 0; i < count; ++i) {
    const auto k = static_cast<double>(first + i);
    rows.X(i, 0) = 4.0 * std::fmod(0.6180339887498949 * k, 1.0);
    rows.X(i, 1) = 4.0 * std::fmod(0.7548776662466927 * k, 1.0);
    rows.y[i] = 3.0 + std::sin(rows.X(i, 0)) * std::cos(rows.X(i, 1)) + 0.05 * std::sin(1000.0 * k);
  }
  return rows;
}

// The file is the first release's own, of `ample fit --batch-size 40 --delta 0.1 --kernel
// "se(lengthscale=[1,1])"` on the first 120 rows. The expectations are what that release predicted,
// before and after it learnt the next 40.
TEST_F(Snapshots, AFileThatTheFirstReleaseWroteLoadsAndGoesOn) {
  const std::string path = std::string(paths::source_dir()) + "/tests/models/first_release.ample";
  EXPECT_EQ(load_snapshot(path).format_version, 1);
  ContinualGP model = load(path);
  EXPECT_EQ(model.rows_seen(), 120);
  EXPECT_EQ(model.size(), 15);
  const Matrix queries{{0.5, 0.5}, {2.0, 3.0}, {3.5, 1.0}};
  const Vector before{{3.412045435901444, 2.138885792575126, 2.841836297349788}};
  EXPECT_LE((model.predict(queries).mean - before).cwiseAbs().maxCoeff(), 1e-12);

  const Batch next = golden_rows(120, 40);
  model.observe(next.X, next.y);
  const Vector after{{3.392778777661566, 2.124260287330479, 2.830984268816}};
  EXPECT_EQ(model.size(), 15);
  // The fit stops by its tolerance, so what has changed in its arithmetic shows here.
  EXPECT_LE((model.predict(queries).mean - after).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_GE((after - before).cwiseAbs().minCoeff(), 1e-2);  // control: the rows do matter
}

TEST_F(Snapshots, AFileWithoutWhatCameLaterLoadsAndGoesOn) {
  ContinualGP model = small_model();
  TensorFile file = tensors_from_bytes(to_bytes(model));
  // It has no factor of I + A, and fewer options.
  file.metadata.at("format_version") = "1";
  file.tensors.erase("L_D");
  file.tensors.erase("w");
  for (const char* option :
       {"find_kernel", "ard", "warm_up", "refit_rows", "refit_seconds", "reservoir", "forget",
        "forget.clock", "forget.half_life", "prune", "targets.weight", "fitted_rows"}) {
    file.metadata.erase(option);
  }
  ContinualGP old = from_bytes(tensors_to_bytes(file));
  Random random(3);
  const Batch next = some_batch(random, 30, model.dimension());
  EXPECT_LE((old.predict(next.X).mean - model.predict(next.X).mean).norm(), 1e-9);
  old.observe(next.X, next.y);
  model.observe(next.X, next.y);
  EXPECT_EQ(old.size(), model.size());
  EXPECT_LE((old.predict(next.X).mean - model.predict(next.X).mean).norm(), 1e-4);
}

TEST_F(Snapshots, BytesAreThoseOfTheFile) {
  const ContinualGP model = small_model();
  save(model, path_, {{"who", "me"}});
  const std::string bytes = to_bytes(model, {{"who", "me"}});
  EXPECT_EQ(bytes, bytes_of(path_));
  EXPECT_NE(bytes, to_bytes(model));  // the notes are in it
  expect_same_bits(from_bytes(bytes), model);
  const Snapshot snapshot = snapshot_from_bytes(bytes);
  EXPECT_EQ(snapshot.notes, (Notes{{"who", "me"}}));
  EXPECT_EQ(to_bytes(snapshot.model, snapshot.notes), bytes);
  try {
    static_cast<void>(from_bytes(bytes.substr(0, bytes.size() / 2)));
    ADD_FAILURE() << "half a model loaded";
  } catch (const ModelFileError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("model bytes: truncated: ")) << error.what();
  }
}

TEST_F(Snapshots, BytesOfAMethodOfTheUsersOwn) {
  const ContinualGP model(with_selection(EveryTenth{}));
  const std::string bytes = to_bytes(model);
  EXPECT_THROW(static_cast<void>(from_bytes(bytes)), ModelFileError);
  EXPECT_EQ(to_bytes(from_bytes(bytes, EveryTenth{})), bytes);
  EXPECT_THROW(static_cast<void>(from_bytes(bytes, Vips{})), std::invalid_argument);
}

TEST_F(Snapshots, WhatIsNotAReadableFileIsNamed) {
  EXPECT_EQ(load_error(), "cannot open: No such file or directory");
  fs::create_directory(path_);
  EXPECT_EQ(load_error(), "is a directory, expected a model file");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(load_error(), "is not a regular file, expected a model file");
}

TEST_F(Snapshots, LargeFilesOfAnotherKindAreNotRead) {
  store(std::string(100, 'x'));
  fs::resize_file(path_, std::uintmax_t{1} << 42);  // of holes; more than any memory
  EXPECT_EQ(load_error().substr(0, 31), "not a model file, or truncated:");
}

TEST_F(Snapshots, SavingToWhatCannotBeWrittenIsAModelFileError) {
  const std::string nowhere = (folder_ / "missing" / "model.ample").string();
  try {
    save(small_model(), nowhere);
    ADD_FAILURE() << "saved nowhere";
  } catch (const ModelFileError& error) {
    EXPECT_EQ(error.what(), nowhere + ": cannot write: No such file or directory");
  }
}

TEST_F(Snapshots, EveryPartIsNeededAndNothingElse) {
  save(small_model(), path_);
  const TensorFile whole = tensors_from_bytes(bytes_of(path_));
  EXPECT_GE(whole.tensors.size(), 8U);
  for (const auto& [name, tensor] : whole.tensors) {
    const std::string error =
        forgery_error([gone = name](TensorFile& file) { file.tensors.erase(gone); });
    EXPECT_EQ(error, "it lacks the tensor " + name + ", expected in a model file");
  }
  for (const auto& [key, text] : whole.metadata) {
    const std::string error =
        forgery_error([gone = key](TensorFile& file) { file.metadata.erase(gone); });
    // A setting that is not there is at its default.
    const bool optional = key.starts_with("selection.");
    EXPECT_EQ(error, optional ? "" : "it lacks '" + key + "', expected in a model file");
  }
  EXPECT_EQ(forgery_error([](TensorFile& f) { f.tensors["B"] = {Matrix::Zero(1, 1)}; }),
            "it has a tensor 'B', expected no such one in a model file");
  EXPECT_EQ(forgery_error([](TensorFile& f) { f.metadata["extra"] = ""; }),
            "it has 'extra', expected no such text in a model file");
}

TEST_F(Snapshots, EveryTextIsChecked) {
  const auto with = [this](const std::string& key, const std::string& text) {
    return forgery_error([&](TensorFile& file) { file.metadata[key] = text; });
  };
  EXPECT_EQ(with("note.x", "y"), "");  // so what is wrong below is what the test changed
  EXPECT_EQ(with("format", "other"), "the format is 'other', expected ample-model");
  EXPECT_EQ(with("format_version", "5").substr(0, 16), "format version 5");
  EXPECT_EQ(with("format_version", "0"),
            "format_version is '0', expected a number from 1 to 2147483647");
  EXPECT_NE(with("kernel", "se(").find("kernel: "), std::string::npos);
  EXPECT_NE(with("kernel", "se(dims=[2])").find("dimension 2"), std::string::npos);
  EXPECT_NE(with("start.kernel", "foo").find("start.kernel: "), std::string::npos);
  EXPECT_EQ(with("noise_variance", "-1"),
            "model: noise_variance is -1, but must lie in [1e-06, 100000000]");
  EXPECT_NE(with("noise_variance", "nan").find("noise_variance is 'nan'"), std::string::npos);
  EXPECT_NE(with("noise_variance", "0.1 ").find("is '0.1 '"), std::string::npos);
  EXPECT_NE(with("noise_variance", "").find("is ''"), std::string::npos);
  EXPECT_NE(with("noise_variance.lower", "0").find("must be positive"), std::string::npos);
  EXPECT_EQ(with("noise_variance.fixed", "no"),
            "noise_variance.fixed is 'no', expected true or false");
  EXPECT_NE(with("selection", "best").find("unknown method 'best'"), std::string::npos);
  EXPECT_NE(with("selection.delta", "-1").find("delta is -1"), std::string::npos);
  EXPECT_NE(with("selection.gamma", "1").find("no setting 'gamma'"), std::string::npos);
  EXPECT_NE(with("refit_every", "-1").find("refit_every is '-1'"), std::string::npos);
  EXPECT_NE(with("refit_every", "1.5").find("refit_every is '1.5'"), std::string::npos);
  EXPECT_EQ(with("standardize", "all"),
            "standardize is 'all', expected none, first-batch or given");
  EXPECT_NE(with("seed", "18446744073709551616").find("seed is"), std::string::npos);
  EXPECT_NE(with("fit_tolerance", "-1").find("fit_tolerance is"), std::string::npos);
  EXPECT_NE(with("fit.max_evaluations", "0").find("max_evaluations is 0"), std::string::npos);
  EXPECT_NE(with("fit.max_step", "0").find("max_step is 0"), std::string::npos);
  EXPECT_NE(with("fit.memory", "-1").find("fit.memory is"), std::string::npos);
  EXPECT_NE(with("targets.m2", "-1").find("targets.m2 is"), std::string::npos);
  EXPECT_EQ(with("batches", "81"),
            "ContinualGP: 81 batches of 80 rows, but must have at least a row in each batch");
  EXPECT_NE(with("batches", "0"), "");
  EXPECT_NE(with("fit.memory", "0").find("memory is 0"), std::string::npos);
  EXPECT_NE(with("fit.max_step", "inf").find("max_step is"), std::string::npos);
  EXPECT_NE(with("target_scale", "0").find("target_scale is 0"), std::string::npos);
  EXPECT_NE(with("target_mean", "inf").find("target_mean is 'inf'"), std::string::npos);
  EXPECT_NE(with("jitter", "-1e-8").find("jitter is"), std::string::npos);
  EXPECT_NE(with("kernel", "se(variance=2, lengthscale=0.9)").find("L Lᵀ is not the kernel's"),
            std::string::npos);
  const std::string long_text = with("standardize", "a\nb" + std::string(1000, 'x'));
  EXPECT_TRUE(long_text.starts_with("standardize is 'a\\x0abxxx")) << long_text;
  EXPECT_LT(long_text.size(), 150U);
}

TEST_F(Snapshots, EveryTensorIsChecked) {
  const auto with = [this](const std::string& name, const std::function<void(Matrix&)>& change) {
    return forgery_error([&](TensorFile& file) { change(file.tensors.at(name).values); });
  };
  EXPECT_EQ(with("input_mean", [](Matrix& mean) { mean *= 0.5; }), "");  // sound in itself
  EXPECT_EQ(with("c", [](Matrix& c) { c *= 0.5; }),
            "L_D w is not c in row 0, expected w to be its solution");
  // A norm that overflows hides nothing.
  EXPECT_EQ(with("c", [](Matrix& c) { c(0) = 1e300; }),
            "L_D w is not c in row 0, expected w to be its solution");
  for (const char* name :
       {"Z", "L", "A", "c", "L_D", "w", "input_mean", "input_scale", "curvature_s"}) {
    const auto bad = with(name, [](Matrix& m) { m(0) = std::nan(""); });
    EXPECT_NE(bad.find(std::string(name) + " holds nan in row 0, column 0"), std::string::npos)
        << bad;
  }
  const Index M = small_model().size();
  const auto shape = [](Index rows, Index cols) {
    return std::to_string(rows) + "×" + std::to_string(cols);
  };
  const auto shorter = [](Matrix& m) { m.conservativeResize(m.rows() - 1, m.cols()); };
  EXPECT_EQ(with("L", shorter), "L is " + shape(M - 1, M) + ", expected " + shape(M, M));
  EXPECT_EQ(with("A", shorter), "A is " + shape(M - 1, M) + ", expected " + shape(M, M));
  EXPECT_EQ(with("c", shorter), "c is " + shape(M - 1, 1) + ", expected " + shape(M, 1));
  EXPECT_EQ(with("Z", shorter), "L is " + shape(M, M) + ", expected " + shape(M - 1, M - 1));
  EXPECT_NE(with("input_mean", shorter).find("Scaling: input_scale has 2 rows"), std::string::npos);
  EXPECT_NE(with("curvature_y", shorter).find("curvature_y is "), std::string::npos);
  EXPECT_NE(with("input_scale", [](Matrix& m) { m(0) = 0.0; }).find("an input_scale is 0"),
            std::string::npos);
  EXPECT_EQ(with("L", [](Matrix& L) { L(1, 1) = -L(1, 1); }).substr(0, 9), "L holds -");
  EXPECT_EQ(with("L", [](Matrix& L) { L(0, 2) = 1e-300; }),
            "L is not zero above its diagonal in column 2, expected a lower triangle");
  EXPECT_EQ(with("L", [](Matrix& L) { L(2, 2) *= 1.001; }),
            "L Lᵀ is not the kernel's matrix at Z in column 2, expected it to be its factor");
  EXPECT_EQ(with("A", [](Matrix& A) { A(0, 1) += 1e-9 * A(0, 0); }),
            "A is not symmetric in column 0");
  EXPECT_EQ(with("A", [](Matrix& A) { A *= -1.0; }),
            "L_D L_Dᵀ is not I + A in column 0, expected it to be its factor");
  EXPECT_EQ(forgery_error([](TensorFile& f) { f.tensors.at("input_mean").rank = 2; }),
            "input_mean has 2 dimensions, expected 1");
}

// Bytes changed, cut off, inserted or moved, one or several, anywhere in a real file.
// What could be read but not used: predictions or updates would fail.
TEST_F(Snapshots, WhatCouldNotPredictOrLearnDoesNotLoad) {
  const auto text = [this](const std::string& key, const std::string& value) {
    return forgery_error([&](TensorFile& file) { file.metadata[key] = value; });
  };
  EXPECT_NE(text("target_scale", "1e160").find("target_scale is 1e+160"), std::string::npos);
  EXPECT_NE(text("target_scale", "1e-160").find("target_scale is 1e-160"), std::string::npos);
  EXPECT_NE(text("target_mean", "1e305").find("target_mean is 1e+305"), std::string::npos);
  EXPECT_NE(text("targets.mean", "1e200").find("their squares must be"), std::string::npos);
  EXPECT_NE(text("targets.m2", "1e305").find("their squares must be"), std::string::npos);
  EXPECT_NE(text("start.kernel", "se(dims=[4])").find("dimension 4"), std::string::npos);
  EXPECT_EQ(text("standardize", "none"),
            "ContinualGP: the data are scaled, but must not be (standardize none)");
}

TEST_F(Snapshots, RowsKeptFitTheModel) {
  Random random(7);
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.warm_up = 20;
  options.refit_rows = 60;
  options.reservoir = 30;
  ContinualGP gp(options);
  const Batch first = some_batch(random, 70, 2);
  gp.observe(first.X, first.y);
  const Batch second = some_batch(random, 10, 2);
  gp.observe(second.X, second.y);
  save(gp, path_);
  const TensorFile sound = tensors_from_bytes(bytes_of(path_));
  ASSERT_TRUE(sound.tensors.contains("reservoir_X") && sound.tensors.contains("pending_X"));
  const auto with = [&](const std::function<void(TensorFile&)>& change) {
    TensorFile file = sound;
    change(file);
    store(tensors_to_bytes(file));
    return load_error();
  };
  const auto columns = [](const char* name) {
    return [name](TensorFile& file) {
      Matrix& rows = file.tensors.at(name).values;
      rows = Matrix::Zero(rows.rows(), 3);
    };
  };
  EXPECT_EQ(with([](TensorFile&) {}), "");
  EXPECT_NE(with(columns("reservoir_X")).find("the reservoir has 3 columns"), std::string::npos);
  EXPECT_NE(with(columns("pending_X")).find("what is pending has 3 columns"), std::string::npos);
  EXPECT_NE(with([](TensorFile& file) {
              file.metadata["reservoir"] = "29";
            }).find("the reservoir has 30 of 70 rows"),
            std::string::npos);
  EXPECT_NE(with([](TensorFile& file) {
              file.metadata["reservoir.seen"] = "81";
            }).find("the reservoir has 30 of 81 rows"),
            std::string::npos);
  EXPECT_NE(with([](TensorFile& file) {
              file.metadata["base.rows_seen"] = "71";
            }).find("10 rows are pending after 71"),
            std::string::npos);
}

TEST_F(Snapshots, TenThousandMutationsAllFailToLoad) {
  save(small_model(), path_, {{"inputs", "[\"a\",\"b\"]"}});
  const std::string whole = bytes_of(path_);
  EXPECT_EQ(load_error(), "");
  std::mt19937_64 random(2025);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto byte = [&] { return static_cast<char>(random()); };
  // The header is where a parser can go wrong, so half of the changes are in it.
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof header);
  int tried = 0;
  while (tried < 10'000) {
    std::string changed = whole;
    const int changes = 1 + static_cast<int>(below(3));
    for (int i = 0; i < changes && !changed.empty(); ++i) {
      const std::size_t end =
          below(2) == 0 ? std::min<std::size_t>(8 + header, changed.size()) : changed.size();
      const std::size_t place = below(end);
      switch (below(5)) {
        case 0:
          changed[place] = byte();
          break;
        case 1:
          changed[place] = static_cast<char>(changed[place] ^ (1 << below(8)));
          break;
        case 2:
          changed.resize(place);
          break;
        case 3:
          changed.insert(place, 1 + below(8), byte());
          break;
        default:
          changed.replace(place, 1 + below(16), changed.substr(below(changed.size()), below(16)));
      }
    }
    if (changed == whole) continue;
    ++tried;
    store(changed);
    ASSERT_NE(load_error(), "") << "mutation " << tried;
  }
}

// Behind a valid checksum, by contrast, a change may make another sound model; it must then work.
TEST_F(Snapshots, ForgedFilesFailToLoadOrAreSoundModels) {
  save(small_model(), path_);
  const TensorFile whole = tensors_from_bytes(bytes_of(path_));
  std::mt19937_64 random(99);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const Matrix X = Matrix::Random(5, 2);
  int sound = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    TensorFile file = whole;
    if (trial % 2 == 0) {
      std::string& text =
          std::next(file.metadata.begin(), static_cast<std::ptrdiff_t>(below(file.metadata.size())))
              ->second;
      constexpr std::string_view kAlphabet = "0123456789.-e+ ()[],=*^fixedinse";
      if (text.empty() || below(3) == 0) {
        text.insert(below(text.size() + 1), 1, kAlphabet[below(kAlphabet.size())]);
      } else {
        text[below(text.size())] = kAlphabet[below(kAlphabet.size())];
      }
    } else {
      Matrix& values =
          std::next(file.tensors.begin(), static_cast<std::ptrdiff_t>(below(file.tensors.size())))
              ->second.values;
      double& value = values(static_cast<Index>(below(static_cast<std::size_t>(values.size()))));
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      bits ^= std::uint64_t{1} << below(64);
      std::memcpy(&value, &bits, sizeof bits);
    }
    store(tensors_to_bytes(file));
    if (load_error().empty()) {
      ++sound;
      const Prediction p = load(path_).predict(X);
      EXPECT_TRUE(p.mean.allFinite() && p.variance.allFinite()) << "trial " << trial;
      EXPECT_FALSE((p.variance.array() < 0.0).any()) << "trial " << trial;
    }
  }
  EXPECT_GT(sound, 10);
  EXPECT_LT(sound, 1800);
}

}  // namespace
}  // namespace ample
