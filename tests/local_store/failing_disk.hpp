// FailingDisk: while there is one, the files that SQLite opens fail to be read, written or synced whenever the test
// says so. One at a time; one thread.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <string>

namespace wirecall::local_store {

class FailingDisk {
 public:
  FailingDisk() {
    now_ = this;
    disk_ = sqlite3_vfs_find(nullptr);
    failing_ = *disk_;
    failing_.zName = "failing";
    failing_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* given) {
      const int result = now_->disk_->xOpen(now_->disk_, name, file, flags, given);
      if (result != SQLITE_OK || file->pMethods == nullptr) return result;
      // SQLite locks the database, and no file beside it: they have other functions.
      if ((flags & SQLITE_OPEN_MAIN_DB) != 0)
        now_->fail<0>(file);
      else
        now_->fail<1>(file);
      return result;
    };
    EXPECT_EQ(sqlite3_vfs_register(&failing_, 1), SQLITE_OK);
  }
  FailingDisk(FailingDisk&&) = delete;
  ~FailingDisk() {
    sqlite3_vfs_unregister(&failing_);
    EXPECT_EQ(sqlite3_vfs_register(disk_, 1), SQLITE_OK);
    now_ = nullptr;
  }

  int reads = 0;
  bool reads_fail = false;
  bool writes_fail = false;
  bool syncs_fail = false;

 private:
  template <int Kind>
  void fail(sqlite3_file* file) {
    real_[Kind] = file->pMethods;
    methods_[Kind] = *file->pMethods;
    methods_[Kind].xRead = [](sqlite3_file* one, void* to, int size, sqlite3_int64 at) {
      ++now_->reads;
      return now_->reads_fail ? SQLITE_IOERR_READ : now_->real_[Kind]->xRead(one, to, size, at);
    };
    methods_[Kind].xWrite = [](sqlite3_file* one, const void* from, int size, sqlite3_int64 at) {
      return now_->writes_fail ? SQLITE_FULL : now_->real_[Kind]->xWrite(one, from, size, at);
    };
    methods_[Kind].xSync = [](sqlite3_file* one, int how) {
      return now_->syncs_fail ? SQLITE_IOERR_FSYNC : now_->real_[Kind]->xSync(one, how);
    };
    file->pMethods = &methods_[Kind];
  }

  static inline FailingDisk* now_ = nullptr;

  sqlite3_vfs* disk_ = nullptr;
  sqlite3_vfs failing_{};
  const sqlite3_io_methods* real_[2] = {};
  sqlite3_io_methods methods_[2] = {};
};

/// Changes a file as no store does.
inline void change_file(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
}

/// The last column of what is read of a file, all rows as one text.
inline std::string read_file(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string text;
  const auto add = [](void* to, int columns, char** values, char**) {
    static_cast<std::string*>(to)->append(values[columns - 1]).append("\n");
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql, add, &text, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
  return text;
}

}  // namespace wirecall::local_store
