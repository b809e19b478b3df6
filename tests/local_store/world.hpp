// A folder for a store that goes with the test, and a thread's turn for what a store answers.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "local_store/database.hpp"
#include "wirecall/detail/executor.hpp"

namespace wirecall::local_store {

class StoreFolder {
 public:
  StoreFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "wirecall_store_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  StoreFolder(StoreFolder&&) = delete;
  ~StoreFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file() const { return path_ + "/wirecall.db"; }

 private:
  std::string path_;
};

/// A database whose time the test moves, opened anew at will.
struct DatabaseWorld {
  explicit DatabaseWorld(LocalStoreOptions given = {}) : options(std::move(given)) {
    options.folder = folder.path();
    options.fsync = Fsync::everysec;  // the disk is not what is tested
    reopen();
  }
  void reopen() {
    database.reset();
    database = std::make_unique<Database>(options, now);
    database->begin();
    database->reset_jobs();
    database->commit(now);
  }
  /// Runs `act` as a change that is committed.
  template <class Act>
  auto change(const Act& act) {
    database->begin();
    auto result = act();
    database->commit(now);
    return result;
  }
  std::uint64_t append(const std::string& topic, const std::string& params = "[1]", const std::string& msg_id = {}) {
    return change([&] { return database->append({.topic = topic, .params = params, .msg_id = msg_id}, now); }).seq;
  }
  std::vector<std::uint64_t> read(const std::string& pattern, std::uint64_t after = 0, std::size_t count = 1000) {
    std::vector<std::uint64_t> seqs;
    const durable::Fetched fetched =
        database->fetch({.pattern = pattern, .after = after, .count = count, .bytes = 1'000'000});
    for (const durable::Event& event : fetched.events) seqs.push_back(event.seq);
    return seqs;
  }
  std::uint64_t push(durable::NewJob job) {
    return change([&] { return database->push(job, now); }).id;
  }
  std::vector<durable::Job> take(const std::string& method, std::size_t count = 10) {
    return change([&] { return database->take({.method = method, .count = count}, now); }).jobs;
  }
  void finish(const durable::JobOutcome& outcome) {
    change([&] { return database->finish(outcome, now), 0; });
  }
  /// The name of the limit that refuses it; "none" where nothing does.
  template <class Act>
  std::string refusal(const Act& act) {
    database->begin();
    std::string limit = "none";
    try {
      act();
    } catch (const Failed& failed) {
      limit = failed.failure.limit.empty() ? failed.failure.why : failed.failure.limit;
    }
    database->commit(now);
    return limit;
  }

  StoreFolder folder;
  LocalStoreOptions options;
  std::int64_t now = 1'000'000;
  std::unique_ptr<Database> database;
};

}  // namespace wirecall::local_store
