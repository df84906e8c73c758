#include "results.h"

#include <fmt/format.h>

#include "ample/version.h"
#include "errors.h"

namespace ample::experiments {
namespace {

// Written into the file, so that it is told from other databases ("Ampl") and from other schemas.
constexpr std::int64_t kApplication = 0x416D706C;
constexpr std::int64_t kSchemaVersion = 1;

// Without rowids: the order of the file does not tell the order of the runs.
constexpr const char* kSchema = R"sql(
BEGIN IMMEDIATE;
PRAGMA application_id = 0x416D706C;
PRAGMA user_version = 1;
CREATE TABLE IF NOT EXISTS runs (
  run TEXT PRIMARY KEY,     -- experiment/data/method/parameter/fold
  experiment TEXT NOT NULL,
  data TEXT NOT NULL,
  method TEXT NOT NULL,
  parameter REAL NOT NULL,
  fold INTEGER NOT NULL,
  state TEXT NOT NULL,      -- begun, done, failed
  seconds REAL NOT NULL,    -- testing and drawing included
  threads INTEGER NOT NULL,
  version TEXT NOT NULL,    -- of Ample
  settings TEXT NOT NULL,   -- JSON: start of the kernel, noise, bounds, selection
  error TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
  run TEXT NOT NULL,
  batch INTEGER NOT NULL,   -- from 1
  rows_seen INTEGER NOT NULL,
  inducing INTEGER NOT NULL,
  added INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  stop TEXT NOT NULL,       -- why the selection stopped
  rmse REAL NOT NULL,
  nlpd REAL NOT NULL,
  noise_rmse REAL NOT NULL, -- of the noise model on the same test set
  noise_nlpd REAL NOT NULL,
  elbo REAL NOT NULL,
  threshold REAL,
  gap REAL,
  kernel TEXT NOT NULL,
  noise_variance REAL NOT NULL,
  evaluations INTEGER NOT NULL,
  seconds_select REAL NOT NULL,
  seconds_fit REAL NOT NULL,
  PRIMARY KEY (run, batch)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS drawings (
  run TEXT NOT NULL,
  batch INTEGER NOT NULL,
  name TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (run, batch, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS interruptions (
  run TEXT PRIMARY KEY,
  model BLOB NOT NULL       -- a model file
) WITHOUT ROWID;
COMMIT;
)sql";

void read(const Statement& row, int column, Index& value) { value = row.integer(column); }
void read(const Statement& row, int column, int& value) {
  value = static_cast<int>(row.integer(column));
}
void read(const Statement& row, int column, double& value) { value = row.real(column); }
void read(const Statement& row, int column, std::string& value) { value = row.text(column); }
void read(const Statement& row, int column, std::optional<double>& value) {
  value = row.is_null(column) ? std::nullopt : std::optional(row.real(column));
}

BatchResult read_batch(const Statement& row) {
  BatchResult result;
  int column = 0;
  for_each_column([&](const char*, auto member) { read(row, column++, result.*member); });
  return result;
}

std::string select_batches() {
  std::string columns;
  for_each_column([&](const char* name, auto) {
    columns += columns.empty() ? "" : ", ";
    columns += name;
  });
  return "SELECT " + columns + " FROM batches WHERE run = ? ORDER BY batch";
}

std::string insert_batch() {
  std::string marks = "?";  // the run
  for_each_column([&](const char*, auto) { marks += ",?"; });
  return "INSERT INTO batches VALUES (" + marks + ")";
}

}  // namespace

const char* to_text(RunState state) {
  switch (state) {
    case RunState::begun:
      return "begun";
    case RunState::done:
      return "done";
    case RunState::failed:
      return "failed";
    case RunState::missing:
      break;
  }
  return "missing";
}

Results::Results(const std::string& path, Access access) : database_(path, access) {
  const auto number = [&](const char* sql) {
    Statement row = database_.prepare(sql);
    return row.step() ? row.integer(0) : 0;
  };
  if (number("SELECT count(*) FROM sqlite_master") > 0) {
    if (number("PRAGMA application_id") != kApplication) {
      throw cli::DataError(
          fmt::format("{}: a database of something else, expected one of `ample-reproduce`", path));
    }
    if (const auto found = number("PRAGMA user_version"); found != kSchemaVersion) {
      throw cli::DataError(fmt::format("{}: results in form {}, expected form {}; use another file",
                                       path, found, kSchemaVersion));
    }
  } else if (access == Access::read) {
    throw cli::DataError(fmt::format("{}: it holds no results yet", path));
  } else {
    database_.execute("PRAGMA journal_mode = WAL");
    database_.execute(kSchema);
  }
  if (access == Access::write) database_.execute("PRAGMA synchronous = NORMAL");
}

RunState Results::state(const Run& run) const {
  Statement row = database_.prepare("SELECT state FROM runs WHERE run = ?");
  if (!row.bind(run.key()).step()) return RunState::missing;
  const std::string text = row.text(0);
  for (const RunState state : {RunState::begun, RunState::done, RunState::failed}) {
    if (text == to_text(state)) return state;
  }
  throw cli::DataError("results: a run in the state '" + text +
                       "', expected begun, done or failed");
}

std::string Results::error(const Run& run) const {
  Statement row = database_.prepare("SELECT error FROM runs WHERE run = ?");
  return row.bind(run.key()).step() ? row.text(0) : std::string();
}

std::optional<double> Results::seconds(const Run& run) const {
  Statement row = database_.prepare("SELECT seconds FROM runs WHERE run = ? AND state = 'done'");
  if (!row.bind(run.key()).step()) return std::nullopt;
  if (!last_batch(run)) {
    throw cli::DataError(
        fmt::format("results: {} is done but has no batches; run it with --again", run.key()));
  }
  return row.real(0);
}

std::vector<BatchResult> Results::batches(const Run& run) const {
  Statement row = database_.prepare(select_batches());
  row.bind(run.key());
  std::vector<BatchResult> all;
  while (row.step()) all.push_back(read_batch(row));
  return all;
}

std::optional<BatchResult> Results::last_batch(const Run& run) const {
  Statement row = database_.prepare(select_batches() + " DESC LIMIT 1");
  if (!row.bind(run.key()).step()) return std::nullopt;
  return read_batch(row);
}

std::optional<Interruption> Results::interruption(const Run& run) const {
  Statement row = database_.prepare(
      "SELECT model, settings, seconds FROM interruptions JOIN runs USING (run) WHERE run = ?");
  if (!row.bind(run.key()).step()) return std::nullopt;
  return Interruption{.model = row.blob(0), .settings = row.text(1), .seconds = row.real(2)};
}

void Results::add(const Run& run, const Progress& progress) {
  for (const BatchResult& b : progress.batches) {
    Statement row = database_.prepare(insert_batch());
    row.bind(run.key());
    for_each_column([&](const char*, auto member) { row.bind(b.*member); });
    row.run();
  }
  for (const Drawing& d : progress.drawings) {
    database_.prepare("INSERT INTO drawings VALUES (?,?,?,?)")
        .bind(run.key())
        .bind(d.batch)
        .bind(d.name)
        .bind(d.json)
        .run();
  }
}

void Results::put(const Run& run, RunState state, double seconds, const std::string& settings,
                  int threads, const std::string& error) {
  database_.prepare("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
      .bind(run.key())
      .bind(run.experiment)
      .bind(run.data)
      .bind(run.method)
      .bind(run.parameter)
      .bind(run.fold)
      .bind(to_text(state))
      .bind(seconds)
      .bind(threads)
      .bind(version())
      .bind(settings)
      .bind(error)
      .run();
}

void Results::keep(const Run& run, const Progress& progress, const std::string& settings,
                   const std::string& model) {
  Transaction transaction(database_);
  add(run, progress);
  put(run, RunState::begun, progress.seconds, settings, 0, "");
  database_.prepare("INSERT OR REPLACE INTO interruptions VALUES (?,?)")
      .bind(run.key())
      .bind_blob(model)
      .run();
  transaction.commit();
}

void Results::finish(const Run& run, const Progress& progress, const std::string& settings,
                     int threads) {
  Transaction transaction(database_);
  add(run, progress);
  put(run, RunState::done, progress.seconds, settings, threads, "");
  database_.prepare("DELETE FROM interruptions WHERE run = ?").bind(run.key()).run();
  transaction.commit();
}

void Results::fail(const Run& run, const std::string& error) {
  Transaction transaction(database_);
  remove(run);
  put(run, RunState::failed, 0.0, "", 0, error);
  transaction.commit();
}

void Results::forget(const Run& run) {
  Transaction transaction(database_);
  remove(run);
  transaction.commit();
}

void Results::remove(const Run& run) {
  for (const char* table : {"runs", "batches", "drawings", "interruptions"}) {
    database_.prepare(std::string("DELETE FROM ") + table + " WHERE run = ?").bind(run.key()).run();
  }
}

}  // namespace ample::experiments
