// See statement.hpp.
#include "local_store/statement.hpp"

#include <sqlite3.h>

#include "local_store/database.hpp"

namespace wirecall::local_store {

static void require(sqlite3* database, bool holds) {
  if (!holds) throw Failed{{.kind = durable::Failure::Kind::broken, .why = sqlite3_errmsg(database)}};
}

Statement::Statement(sqlite3* database, const char* sql) {
  require(database,
          sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr) == SQLITE_OK);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

bool Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  sqlite3* const database = sqlite3_db_handle(statement_);
  reset();
  require(database, result == SQLITE_DONE);
  return false;
}

std::int64_t Statement::integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }

std::string Statement::text(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string{} : std::string{static_cast<const char*>(bytes), size};
}

void Statement::reset() noexcept { sqlite3_reset(statement_); }

void Statement::bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }

void Statement::bind(int at, std::string_view value) {
  sqlite3_bind_blob64(statement_, at, value.data() != nullptr ? value.data() : "", value.size(), SQLITE_STATIC);
}

int Statement::changes() const noexcept { return sqlite3_changes(sqlite3_db_handle(statement_)); }

}  // namespace wirecall::local_store
