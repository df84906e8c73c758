#include "database.h"

#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "errors.h"

namespace ample::experiments {
namespace {

// Workers write a few times a minute and for milliseconds; whoever waits this long waits in vain.
constexpr int kPatienceMilliseconds = 60'000;

[[noreturn]] void fail(sqlite3* database, std::string_view doing) {
  const char* file = sqlite3_db_filename(database, "main");
  throw cli::DataError(fmt::format("{}: {}: {}", file != nullptr ? file : "results", doing,
                                   sqlite3_errmsg(database)));
}

}  // namespace

// --- Statement ----------------------------------------------------------------------------------

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      bound_(other.bound_) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int status) const {
  if (status != SQLITE_OK) fail(database_, "cannot bind a value");
}

Statement& Statement::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}
Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}
Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}
Statement& Statement::bind(const std::optional<double>& value) {
  if (value) return bind(*value);
  check(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}
Statement& Statement::bind_blob(std::string_view bytes) {
  check(sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int status = sqlite3_step(statement_);
  if (status != SQLITE_ROW && status != SQLITE_DONE) fail(database_, "cannot read or write");
  return status == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
}

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
std::string Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

// --- Database -----------------------------------------------------------------------------------

Database::Database(const std::string& path, Access access) : path_(path) {
  const int flags =
      access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &database_, flags, nullptr) != SQLITE_OK) {
    const std::string why = database_ != nullptr ? sqlite3_errmsg(database_) : "no memory";
    sqlite3_close(database_);
    throw cli::DataError(fmt::format("{}: cannot open the results: {}", path, why));
  }
  sqlite3_busy_timeout(database_, kPatienceMilliseconds);
}

Database::~Database() { sqlite3_close(database_); }

void Database::execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail(database_, "cannot read or write");
  }
}

Statement Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement,
                         nullptr) != SQLITE_OK) {
    fail(database_, "not a file of results");
  }
  return {database_, statement};
}

// --- Transaction --------------------------------------------------------------------------------

// IMMEDIATE: two that begin by reading and then both write would wait for each other for ever.
Transaction::Transaction(Database& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const cli::DataError&) {  // NOLINT(bugprone-empty-catch): SQLite has rolled back already
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace ample::experiments
