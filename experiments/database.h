// SQLite behind two small classes, so that nothing is left open or unbound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace ample::experiments {

/// A statement that is being carried out. Values are bound in the order of its question marks.
class Statement {
 public:
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(std::string_view text);
  Statement& bind(double value);
  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(std::int64_t{value}); }
  Statement& bind(const std::optional<double>& value);
  Statement& bind_blob(std::string_view bytes);

  /// To the next row; false after the last.
  bool step();
  /// To the end.
  void run();

  // Columns of the row at hand, from 0.
  [[nodiscard]] std::string text(int column) const { return blob(column); }
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string blob(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}
  void check(int status) const;

  sqlite3* database_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

enum class Access { read, write };

/// One connection to a file, which is made if it is to be written. What goes wrong is thrown as
/// cli::DataError.
class Database {
 public:
  explicit Database(const std::string& path, Access access = Access::write);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database(Database&&) = delete;
  Database& operator=(Database&&) = delete;
  ~Database();

  /// Statements without values, any number of them.
  void execute(const char* sql);
  [[nodiscard]] Statement prepare(std::string_view sql) const;

 private:
  std::string path_;
  sqlite3* database_ = nullptr;
};

/// All or nothing: what was written is taken back unless commit() was reached.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction(Transaction&&) = delete;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace ample::experiments
