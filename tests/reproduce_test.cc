// `ample-reproduce`: the plan, the result file, the paper's rule, and runs that are stopped, killed
// and gone on with.
#include <chrono>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "database.h"
#include "errors.h"
#include "fronts.h"
#include "fronts_table.h"
#include "job.h"
#include "operating_point.h"
#include "paper_values.h"
#include "plan.h"
#include "protocol.h"
#include "results.h"
#include "support/data.h"
#include "support/program.h"
#include "support/random.h"
#include "tables.h"
#include "time_left.h"

namespace ample::experiments {
namespace {

using ample::testing::Arguments;
using ample::testing::lines_of;
using ample::testing::Program;
using ample::testing::Random;
using ample::testing::Result;

using PlannedRun = Run;  // in a test, Run is a member of GoogleTest's

std::vector<Run> whole_plan() {
  PlanFilter everything;
  everything.whole_sweep = true;
  return plan(everything);
}

// ---- the plan

TEST(Plan, EveryRunIsThereOnceAndFoundByItsKey) {
  std::set<std::string> keys;
  for (const PlannedRun& run : whole_plan()) {
    EXPECT_TRUE(keys.insert(run.key()).second) << run.key();
    EXPECT_EQ(find_run(run.key()), run);
  }
  EXPECT_FALSE(find_run("uci/naval/vips/0.05/5"));
}

TEST(Plan, HasEveryPublishedOperatingPointOnEverySetAndFold) {
  std::set<std::string> keys;
  for (const PlannedRun& run : whole_plan()) keys.insert(run.key());
  for (const Criterion& criterion : criteria()) {
    for (const char* method : {"vips", "cv", "oips"}) {
      const std::optional<double> point = paper_operating_point(criterion, method);
      if (!point) continue;
      for (const std::string& data : uci_names()) {
        for (int fold = 0; fold < kFolds; ++fold) {
          const PlannedRun run{"uci", data, method, *point, fold};
          EXPECT_TRUE(keys.contains(run.key())) << run.key();
        }
      }
    }
  }
}

TEST(Plan, FiltersByEveryColumn) {
  PlanFilter filter;
  filter.experiments = {"uci"};
  filter.data = {"naval", "concrete"};
  filter.methods = {"vips"};
  filter.parameters = {0.05};
  filter.folds = {3};
  const std::vector<PlannedRun> runs = plan(filter);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].key(), "uci/concrete/vips/0.05/3");
  EXPECT_EQ(runs[1].key(), "uci/naval/vips/0.05/3");
}

TEST(Plan, WhatIsNotRecordedIsAskedForByOneOption) {
  PlanFilter filter;
  EXPECT_LT(plan(filter).size(), whole_plan().size());
}

// ---- streams that are made up

TEST(Jobs, MadeUpStreamsAreTheSameEveryTimeAndDifferFromSeedToSeed) {
  for (const char* key : {"figure1/outliers/vips/0.05/0", "figure2a/synthetic/vips/0.05/0",
                          "large/growing-domain/vips/0.095/0"}) {
    const PlannedRun run = find_run(key).value();
    const Job job = make_job(run, "");
    EXPECT_EQ(job.train(1).X, make_job(run, "").train(1).X) << key;
    PlannedRun other = run;
    other.fold = 1;
    EXPECT_NE(job.train(1).X, make_job(other, "").train(1).X) << key;
    EXPECT_EQ(job.train_until(2).X.bottomRows(job.train(1).X.rows()), job.train(1).X) << key;
  }
}

TEST(Jobs, LargeScenariosAreWhatThePaperDescribes) {
  const Job growing = make_job(find_run("large/growing-domain/vips/0.095/0").value(), "");
  EXPECT_EQ(growing.batches, 50);
  EXPECT_EQ(growing.train_until(50).X.rows(), 50'000);
  EXPECT_LT(growing.train(10).X.col(0).maxCoeff(), growing.train(11).X.col(0).minCoeff() + 1e-12);

  const Job fixed = make_job(find_run("large/fixed-domain/vips/0.095/0").value(), "");
  EXPECT_LT(fixed.train(0).X.minCoeff(), 0.1);
  EXPECT_GT(fixed.train(0).X.maxCoeff(), 19.9);

  const Job outliers = make_job(find_run("large/outliers/vips/0.095/0").value(), "");
  const Batch all = outliers.train_until(50);
  const auto outside = [](const Matrix& X) {
    return ((X.array() < 5.0) || (X.array() > 15.0)).rowwise().any().count();
  };
  EXPECT_EQ(outside(all.X.topRows(35'000)), 0);
  // Of 5000 uniform on [0, 40]³ one in 64 falls inside [5, 15]³.
  EXPECT_NEAR(static_cast<double>(outside(all.X)), 5000.0 * 63.0 / 64.0, 60.0);
}

TEST(Jobs, FigureTwoIsTestedOnlyWhereTheStreamHasBeen) {
  const Job job = make_job(find_run("figure2a/synthetic/vips/0.05/0").value(), "");
  ASSERT_EQ(job.batches, 4);
  EXPECT_LE(job.test(1).X.maxCoeff(), job.train(0).X.maxCoeff());
  EXPECT_EQ(job.test(4).X.rows(), 500);
}

// ---- the fronts

TEST(Fronts, EveryRuleIsFoundByItsName) {
  using Start = FrontRule::Start;
  std::set<std::string> names;
  for (const Start start : {Start::paper, Start::out_of_the_box}) {
    for (const FrontRule& rule : front_rules(start)) {
      EXPECT_TRUE(names.insert(rule.name()).second) << rule.name();
      EXPECT_EQ(front_rule(rule.name()), rule);
      EXPECT_EQ(rule.is_the_papers(), rule.name() == "paper-variance-0");
    }
  }
  EXPECT_THROW(static_cast<void>(front_rule("paper-gain")), std::logic_error);
}

TEST(Fronts, ARunIsThePapersButForItsRule) {
  if (!ample::testing::has_data()) GTEST_SKIP() << ample::testing::no_data();
  const std::string folder = ample::testing::data_dir();
  const Job uci = make_job({"uci", "concrete", "vips", 0.095, 1}, folder);
  const Job same = make_job({"fronts", "concrete", "paper-variance-0", 0.095, 1}, folder);
  EXPECT_EQ(same.train(3).X, uci.train(3).X);
  EXPECT_EQ(same.options.selection.settings(), uci.options.selection.settings());
  EXPECT_EQ(same.options.prune, 0.0);

  const Job gain = make_job({"fronts", "concrete", "paper-gain-0.05", 0.095, 1}, folder);
  EXPECT_NE(gain.options.selection.settings(), uci.options.selection.settings());
  EXPECT_EQ(gain.options.prune, 0.05);
  EXPECT_FALSE(gain.options.find_kernel);

  const Job box = make_job({"fronts", "concrete", "default-gain-0.01", 0.2, 1}, folder);
  SelectionSettings expected = ContinualGPOptions::out_of_the_box().selection.settings();
  expected["delta"] = 0.2;
  EXPECT_EQ(box.options.selection.settings(), expected);
  EXPECT_EQ(box.options.prune, 0.01);
  EXPECT_TRUE(box.options.find_kernel);

  const Job capped = make_job({"fronts", "concrete", "default-gain-0.05-900", 0.2, 1}, folder);
  expected["max_inducing"] = 900;
  EXPECT_EQ(capped.options.selection.settings(), expected);
}

BatchResult front_point(Index inducing, double rmse) {
  BatchResult b;
  b.inducing = inducing;
  b.rmse = rmse;
  return b;
}

/// The paper's rule has 100 points and an error of 0.3 on all six sets.
Fronts fronts_with(const std::string& rule, double delta, Index inducing, double rmse) {
  Fronts fronts;
  for (const std::string& data : uci_names()) {
    fronts[{FrontRule{}.name(), 0.095}][data][0] = front_point(100, 0.3);
    fronts[{rule, delta}][data][0] = front_point(inducing, rmse);
  }
  return fronts;
}

TEST(Fronts, TheBestRuleIsCloseOnMostSetsAndThenSmallest) {
  using Start = FrontRule::Start;
  Fronts fronts = fronts_with("default-gain-0.05", 0.2, 25, 0.305);
  for (const std::string& data : uci_names()) {
    fronts[{"default-gain-0", 0.2}][data][0] = front_point(50, 0.2);
    fronts[{"default-gain-0.01", 0.2}][data][0] = front_point(5, 0.32);
  }
  const auto best = best_choice(fronts, Start::out_of_the_box, 0.095);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->rule, "default-gain-0.05");
  EXPECT_EQ(best->close(), 6U);
  EXPECT_NEAR(best->size(), 0.25, 1e-12);
  // The paper's own rule is one of its start's.
  EXPECT_EQ(best_choice(fronts, Start::paper, 0.095).value().rule, "paper-variance-0");
  // Nobody is judged on fewer sets, nor beside a rule that was not run.
  fronts[{"default-gain-0.05", 0.2}].erase("bike");
  EXPECT_EQ(best_choice(fronts, Start::out_of_the_box, 0.095).value().rule, "default-gain-0");
  EXPECT_FALSE(best_choice(fronts, Start::out_of_the_box, 0.02));
}

TEST(Fronts, OnlyFoldsThatBothWereRunOnAreCompared) {
  Fronts fronts = fronts_with("paper-gain-0", 0.05, 50, 0.3);
  for (const std::string& data : uci_names()) {
    fronts[{"paper-gain-0", 0.05}][data][1] = front_point(1, 9.0);
  }
  const auto best = best_choice(fronts, FrontRule::Start::paper, 0.095);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->rule, "paper-gain-0");
  EXPECT_EQ(best->sets.at("naval").folds, 1U);
  EXPECT_NEAR(best->size(), 0.5, 1e-12);
}

// ---- the paper's rule

Measured measured(double inducing, double percent) {
  Measured m;
  m.folds = 5;
  m.folds = m.judged = 5;
  m.inducing = inducing;
  m.rmse_percent = percent;
  m.nlpd_percent = 2.0 * percent;
  return m;
}

TEST(OperatingPoint, IsTheSmallestModelThatIsAccurateEnough) {
  const Sweep sweep{{0.01, {{"a", measured(300, 1.0)}, {"b", measured(900, 4.0)}}},
                    {0.05, {{"a", measured(200, 3.0)}, {"b", measured(500, 8.0)}}},
                    {0.10, {{"a", measured(100, 9.0)}, {"b", measured(300, 30.0)}}}};
  const auto point = [&](const char* method, const Criterion& criterion) {
    const OperatingPoint found = operating_point(method, sweep, criterion, {"a", "b"});
    EXPECT_FALSE(found.open);
    return found.parameter;
  };
  EXPECT_EQ(point("vips", {Metric::rmse, 5, 0}), 0.01);
  EXPECT_EQ(point("vips", {Metric::rmse, 10, 0}), 0.05);
  EXPECT_EQ(point("vips", {Metric::rmse, 10, 1}), 0.10);
  EXPECT_EQ(point("vips", {Metric::nlpd, 5, 0}), std::nullopt);
  EXPECT_EQ(point("cv", {Metric::nlpd, 5, 1}), 0.01);
  // OIPS grows with ρ.
  EXPECT_EQ(point("oips", {Metric::rmse, 10, 0}), 0.01);
}

TEST(OperatingPoint, IsOpenWhereASmallerModelWasNotRunEverywhere) {
  const Sweep sweep{{0.01, {{"a", measured(300, 1.0)}, {"b", measured(900, 4.0)}}},
                    {0.05, {{"a", measured(200, 3.0)}}},
                    {0.10, {{"a", measured(100, 9.0)}}}};
  const auto point = [&](double percent, const std::vector<std::string>& required) {
    return operating_point("vips", sweep, {Metric::rmse, percent, 0}, required);
  };
  // 0.05 may be accurate enough on b; 0.10 is not, whatever b says.
  EXPECT_EQ(point(5, {"a", "b"}), (OperatingPoint{.parameter = 0.01, .open = true}));
  EXPECT_EQ(point(5, {"a", "b"}).settled(), std::nullopt);
  EXPECT_EQ(point(5, {"a"}), (OperatingPoint{.parameter = 0.05, .open = false}));
  EXPECT_EQ(point(2, {"a", "b"}), (OperatingPoint{.parameter = std::nullopt, .open = false}));
}

TEST(PaperValues, AreThoseOfTheAppendix) {
  const Criterion ten{Metric::rmse, 10, 0};
  EXPECT_EQ(paper_cell(ten, "naval", "vips")->inducing, 57);
  EXPECT_EQ(paper_cell(ten, "kin8nm", "vips")->inducing, 1904);
  EXPECT_FALSE(paper_cell(ten, "naval", "oips"));
  EXPECT_EQ(paper_cell({Metric::nlpd, 10, 1}, "bike", "cv")->percent, 2.95);
  for (const Criterion& c : criteria()) {
    if (c.metric == Metric::nlpd && c.percent == 5 && c.outliers == 0) continue;
    for (const std::string& data : uci_names()) {
      ASSERT_TRUE(paper_cell(c, data, "vips")) << data;
      // Where the paper gives a point without outliers, all of its sets are accurate enough.
      if (c.outliers == 0) {
        EXPECT_LE(paper_cell(c, data, "vips")->percent, c.percent) << data;
        EXPECT_LE(paper_cell(c, data, "cv")->percent, c.percent) << data;
      }
    }
  }
}

TEST(TimeLeft, IsToldInWords) {
  EXPECT_EQ(duration_text(41.6), "42 s");
  EXPECT_EQ(duration_text(14 * 60.0), "14 min");
  EXPECT_EQ(duration_text(130 * 60.0), "2 h 10 min");
}

// ---- the result file

class ResultFile : public ample::testing::ProgramTest {
 protected:
  std::string path() { return (folder_ / "results.sqlite").string(); }
  const PlannedRun run_ = find_run("uci/naval/vips/0.05/0").value();
};

TEST_F(ResultFile, KeepsARunInTheMiddleAndItsEnd) {
  BatchResult first;
  first.batch = 1;
  first.inducing = 13;
  first.gap = 1.5;
  first.kernel = "se()";
  BatchResult second = first;
  second.batch = 2;
  second.gap.reset();
  {
    Results results(path());
    EXPECT_EQ(results.state(run_), RunState::missing);
    results.keep(run_, {{first}, {{1, "map", "{}"}}, 2.5}, "{}", std::string("a\0b", 3));
  }
  Results results(path());
  EXPECT_EQ(results.state(run_), RunState::begun);
  EXPECT_FALSE(results.seconds(run_));
  EXPECT_EQ(results.interruption(run_)->model, std::string("a\0b", 3));
  EXPECT_EQ(results.interruption(run_)->settings, "{}");
  EXPECT_EQ(results.interruption(run_)->seconds, 2.5);
  results.finish(run_, {{second}, {}, 4.0}, "{}", 2);
  EXPECT_EQ(results.state(run_), RunState::done);
  EXPECT_EQ(results.seconds(run_), 4.0);
  EXPECT_FALSE(results.interruption(run_));
  const std::vector<BatchResult> all = results.batches(run_);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].gap, 1.5);
  EXPECT_EQ(all[1].gap, std::nullopt);
  EXPECT_EQ(all[1].inducing, 13);
  EXPECT_EQ(results.last_batch(run_)->batch, 2);
  results.forget(run_);
  EXPECT_EQ(results.state(run_), RunState::missing);
  EXPECT_TRUE(results.batches(run_).empty());
}

TEST_F(ResultFile, AFailureIsRememberedWithItsReason) {
  Results results(path());
  results.fail(run_, "no digits left");
  EXPECT_EQ(results.state(run_), RunState::failed);
  EXPECT_EQ(results.error(run_), "no digits left");
}

TEST_F(ResultFile, NothingIsLeftOfTheBatchesOfARunThatFails) {
  Results results(path());
  BatchResult batch;
  batch.batch = 1;
  results.keep(run_, {{batch}, {}, 1.0}, "{}", {'a'});
  results.fail(run_, "no digits left");
  EXPECT_TRUE(results.batches(run_).empty());
  EXPECT_FALSE(results.interruption(run_));
}

TEST_F(ResultFile, ARunThatIsDoneWithoutBatchesIsNamed) {
  Results results(path());
  results.finish(run_, {}, "{}", 1);
  try {
    std::ignore = results.seconds(run_);
    FAIL() << "it was taken";
  } catch (const cli::DataError& error) {
    EXPECT_STREQ(error.what(),
                 "results: uci/naval/vips/0.05/0 is done but has no batches; run it with --again");
  }
}

TEST_F(ResultFile, NothingOfATransactionThatIsNotCommittedIsLeft) {
  Results results(path());
  BatchResult batch;
  batch.batch = 1;
  // The second of the same number is refused, and the first goes with it.
  EXPECT_THROW(results.keep(run_, {{batch, batch}, {}, 1.0}, "{}", {'a'}), cli::DataError);
  EXPECT_EQ(results.state(run_), RunState::missing);
  EXPECT_TRUE(results.batches(run_).empty());
}

TEST_F(ResultFile, AFileThatIsNoneIsRefused) {
  store("results.sqlite", std::string(4096, 'x'));
  EXPECT_THROW(Results{path()}, cli::DataError);
}

TEST_F(ResultFile, ADatabaseOfSomethingElseIsRefusedAndLeftAsItIs) {
  Database(path()).execute("CREATE TABLE runs (pace REAL)");
  const std::string before = ample::testing::bytes_of(path());
  for (const Access access : {Access::read, Access::write}) {
    EXPECT_THROW(Results(path(), access), cli::DataError);
  }
  EXPECT_EQ(ample::testing::bytes_of(path()), before);
}

TEST_F(ResultFile, AnotherFormIsRefusedByItsNumber) {
  std::ignore = Results(path());
  Database(path()).execute("PRAGMA user_version = 7");
  try {
    const Results results(path());
    FAIL() << "it was taken";
  } catch (const cli::DataError& error) {
    EXPECT_NE(std::string(error.what()).find("results in form 7, expected form 1"),
              std::string::npos);
  }
}

TEST_F(ResultFile, ReadingMakesNoFileAndWritesNone) {
  EXPECT_THROW(Results(path(), Access::read), cli::DataError);
  EXPECT_FALSE(std::filesystem::exists(path()));
  store("results.sqlite", "");
  EXPECT_THROW(Results(path(), Access::read), cli::DataError);
  EXPECT_EQ(std::filesystem::file_size(path()), 0U);
}

// ---- the command

class Reproduce : public ample::testing::ProgramTest {
 protected:
  Reproduce() { program_ = paths::reproduce(); }

  /// Runs what must work; it tells its progress on standard error.
  [[nodiscard]] Result complete(const Arguments& arguments) const {
    Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }

  /// Runs what must fail: with this code and one line that says so.
  void refuse(int code, const Arguments& arguments, const std::string& message) const {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
    EXPECT_TRUE(result.err.starts_with("ample-reproduce: ")) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }

  /// All that is in a result file but what a clock said, as text.
  std::string contents(const std::string& file) {
    const Database database((folder_ / file).string());
    std::string text;
    const auto add = [&](const char* sql, int columns) {
      Statement row = database.prepare(sql);
      while (row.step()) {
        for (int c = 0; c < columns; ++c) text += row.text(c) + "|";
        text += "\n";
      }
    };
    add("SELECT run, state, settings, error FROM runs ORDER BY run", 4);
    add("SELECT run, batch, rows_seen, inducing, added, removed, stop, printf('%!.17g', rmse), "
        "printf('%!.17g', nlpd), "
        "printf('%!.17g', noise_rmse), printf('%!.17g', noise_nlpd), printf('%!.17g', elbo), "
        "printf('%!.17g', threshold), printf('%!.17g', gap), kernel, printf('%!.17g', "
        "noise_variance), "
        "evaluations FROM batches ORDER BY run, batch",
        17);
    add("SELECT run, batch, name, json FROM drawings ORDER BY run, batch, name", 4);
    add("SELECT run FROM interruptions", 1);
    return text;
  }
};

TEST_F(Reproduce, MistakesAreToldInOneLine) {
  refuse(2, {}, "expected NAME: all or some of figure1");
  refuse(2, {"figure3"}, "unknown experiment 'figure3', expected all or some of");
  refuse(2, {"figure1", "--data", "naval"},
         "--data is 'naval', expected some of: fixed-domain growing-domain outliers");
  refuse(2, {"uci", "--data", "concrete,skilcraft"}, "--data is 'skilcraft'");
  refuse(2, {"uci", "--method", "exact", "--parameter", "0.2"},
         "no run of the plan fits --data, --method, --parameter and --fold together");
  refuse(2, {"figure1", "--again", "--tables"}, "--tables excludes --again");
  refuse(3, {"figure1", "--csv", "no/such/folder/r.csv"}, "no/such/folder");
  refuse(2, {"figure1", "--jobs", "0"}, "--jobs");
  refuse(2, {"figure1", "--save-every", "-1"}, "--save-every");
  refuse(3, {"figure1", "--tables", "--results", "none.sqlite"}, "no such file");
  refuse(3, {"uci", "--data-dir", "nowhere"}, "ample-reproduce data fetch bike --data-dir nowhere");
  refuse(3, {"figure1", "--results", "no/such/folder/r.sqlite"}, "no/such/folder");
}

TEST_F(Reproduce, RunsOnceAndPrintsTheTable) {
  const Result first = complete({"figure1", "--fold", "0", "--jobs", "2"});
  EXPECT_NE(first.out.find("| growing-domain"), std::string::npos) << first.out;
  EXPECT_EQ(lines_of(first.err).size(), 3U) << first.err;
  EXPECT_NE(first.err.find("[3/3] "), std::string::npos) << first.err;
  const Result second = complete({"figure1", "--fold", "0"});
  EXPECT_NE(second.err.find("3 of 3 runs were done before"), std::string::npos) << second.err;
  const Result list = complete({"figure1", "--fold", "0,1", "--list"});
  EXPECT_NE(list.out.find("figure1/outliers/vips/0.05/0\tdone"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("figure1/outliers/vips/0.05/1\tmissing"), std::string::npos) << list.out;
}

TEST_F(Reproduce, WritesEveryRunAsALine) {
  std::ignore = complete({"figure1", "--fold", "0", "--csv", "runs.csv"});
  const std::vector<std::string> lines = lines_of(ample::testing::bytes_of(folder_ / "runs.csv"));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0].starts_with("experiment,data,method,parameter,fold,inducing,rmse"));
  EXPECT_TRUE(lines[1].starts_with("figure1,growing-domain,vips,0.05,0,")) << lines[1];
}

TEST_F(Reproduce, TheNumberOfProcessesDoesNotShowInTheResults) {
  std::ignore = complete({"figure1", "figure2a", "--fold", "0", "--results", "one.sqlite"});
  std::ignore =
      complete({"figure1", "figure2a", "--fold", "0", "--results", "two.sqlite", "--jobs", "2"});
  EXPECT_EQ(contents("one.sqlite"), contents("two.sqlite"));
}

TEST_F(Reproduce, TwoRunnersDoNotShareAFileAndTheSecondForgetsNothing) {
  std::ignore = complete({"figure1", "--fold", "0"});
  const std::string before = contents("results.sqlite");
  const int lock = ::open((folder_ / "results.sqlite.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  refuse(3, {"figure1", "--fold", "0", "--again"},
         "results.sqlite: another `ample-reproduce` is writing to it");
  EXPECT_EQ(contents("results.sqlite"), before);
  ::close(lock);
  const Result again = complete({"figure1", "--fold", "0", "--again"});
  EXPECT_EQ(again.err.find("were done before"), std::string::npos) << again.err;
  EXPECT_EQ(contents("results.sqlite"), before);
}

TEST_F(Reproduce, WhatCannotBeGoneOnFromBeginsAnew) {
  const Arguments one{"figure1", "--fold", "0", "--data", "outliers"};
  std::ignore = complete(one);
  const std::string whole = contents("results.sqlite");
  const auto after = [&](const char* damage) {
    Database((folder_ / "results.sqlite").string()).execute(damage);
    const Result result = complete(one);
    EXPECT_EQ(contents("results.sqlite"), whole);
    return result.err;
  };
  EXPECT_NE(after("UPDATE runs SET state = 'begun'").find("begins anew: its model was not saved"),
            std::string::npos);
  const char* const damaged =
      "UPDATE runs SET state = 'begun'; INSERT INTO interruptions SELECT run, 'x' FROM runs";
  EXPECT_NE(after(damaged).find("begins anew: its saved model is damaged"), std::string::npos);
  const char* const other =
      "UPDATE runs SET state = 'begun', settings = '{}';"
      "INSERT INTO interruptions SELECT run, 'x' FROM runs";
  EXPECT_NE(after(other).find("begins anew: it was saved with other settings"), std::string::npos);
}

TEST_F(Reproduce, KilledAtTenRandomMomentsItEndsWithTheSameResults) {
  const std::vector<std::string> names{"figure1",      "figure2a", "--fold", "0,1",
                                       "--save-every", "0",        "--jobs", "2"};
  std::vector<std::string> undisturbed = names;
  undisturbed.insert(undisturbed.end(), {"--results", "undisturbed.sqlite"});
  const auto start = std::chrono::steady_clock::now();
  std::ignore = complete(undisturbed);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;

  std::vector<std::string> disturbed = names;
  disturbed.insert(disturbed.end(), {"--results", "disturbed.sqlite"});
  Random random(static_cast<std::uint64_t>(whole.count() * 1e9));  // other moments every time
  int killed = 0;
  for (int i = 0; i < 10; ++i) {
    Program program(folder_, disturbed, -1, program_);
    std::this_thread::sleep_for(whole * random.uniform(0.02, 0.2));
    // In turn the hard way and the polite one.
    program.signal(i % 2 == 0 ? SIGKILL : SIGTERM);
    const int code = program.wait().code;
    if (code != 0) {
      ++killed;
      // A polite signal that comes before the program watches for it ends it like any other.
      if (i % 2 == 0 || code == -SIGTERM) {
        EXPECT_EQ(code, i % 2 == 0 ? -SIGKILL : -SIGTERM);
      } else {
        EXPECT_EQ(code, 128 + SIGTERM);
      }
    }
  }
  EXPECT_GE(killed, 3);
  std::ignore = complete(disturbed);
  EXPECT_EQ(contents("undisturbed.sqlite"), contents("disturbed.sqlite"));
}

TEST_F(Reproduce, ARealStreamGoesOnFromItsMiddle) {
  if (!ample::testing::has_data()) GTEST_SKIP() << ample::testing::no_data();
  const std::string data = ample::testing::data_dir().string();
  const std::vector<std::string> names{
      "uci",    "--data", "concrete",     "--method", "vips",       "--parameter", "0.02",
      "--fold", "0",      "--save-every", "0",        "--data-dir", data};
  std::vector<std::string> disturbed = names;
  disturbed.insert(disturbed.end(), {"--results", "disturbed.sqlite"});
  Program program(folder_, disturbed, -1, program_);
  // As soon as a model is kept, it is killed.
  for (bool kept = false; !kept;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!std::filesystem::exists(folder_ / "disturbed.sqlite")) continue;
    try {
      const Results results((folder_ / "disturbed.sqlite").string());
      kept = results.state(find_run("uci/concrete/vips/0.02/0").value()) != RunState::missing;
    } catch (const cli::DataError&) {
      continue;  // it is just being made
    }
  }
  program.signal(SIGKILL);
  program.wait();
  std::ignore = complete(disturbed);
  std::vector<std::string> undisturbed = names;
  undisturbed.insert(undisturbed.end(), {"--results", "undisturbed.sqlite"});
  std::ignore = complete(undisturbed);
  EXPECT_EQ(contents("undisturbed.sqlite"), contents("disturbed.sqlite"));
}

}  // namespace
}  // namespace ample::experiments
