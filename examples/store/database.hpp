// Database: one LMDB environment, a folder, whose keys are strings of 1 to 511 bytes. A commit is on disk when it
// returns. Reads see the last commit, and never wait for one that is in progress.
// Thread: any. It throws wirecall::Error where the caller can do something, and LocalError, which callers see as -32603
// and the log with its text, where LMDB or the disk fails.
#pragma once

#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <lmdb.h>
#include <mutex>
#include <unistd.h>

#include "wirecall/wirecall.hpp"

namespace store {

using Bytes = std::vector<std::byte>;

struct Entry {
  std::string key;
  Bytes value;
};

/// A key gets a value, or, with null, is deleted. The value is required, so that a misspelt one deletes nothing.
struct Change {
  std::string key;
  std::variant<std::monostate, Bytes> value;

  [[nodiscard]] const Bytes* put() const { return std::get_if<Bytes>(&value); }
  [[nodiscard]] std::size_t value_bytes() const { return put() != nullptr ? put()->size() : 0; }
};

/// The changes of one call, all or none, and how many keys it has written or deleted, or why none.
using Write = std::vector<Change>;
using Outcome = std::expected<std::uint64_t, wirecall::Error>;

struct Bounds {
  std::size_t map_bytes = std::size_t{1} << 30;    ///< of the store's file
  std::size_t value_bytes = std::size_t{1} << 20;  ///< of one value
};

class Database {
  struct Release {
    Database* database;
    void operator()(MDB_txn* reader) const noexcept { database->release(reader); }
  };
  using Reader = std::unique_ptr<MDB_txn, Release>;

 public:
  /// A value where LMDB has it, for as long as this lives.
  struct Found {
    Reader reader;
    std::span<const std::byte> value;
  };

  /// Opens or makes the store. `on_commit` is called after each commit with what it has stored, in order; not by
  /// several threads at once.
  Database(const std::filesystem::path& folder, Bounds bounds, std::function<void(std::vector<Write>)> on_commit)
      : bounds_(bounds), on_commit_(std::move(on_commit)) {
    idle_readers_.reserve(kReadersMax);
    std::filesystem::create_directories(folder);
    MDB_env* env = nullptr;
    check(mdb_env_create(&env));
    env_.reset(env);
    check(mdb_env_set_mapsize(env, bounds.map_bytes));
    check(mdb_env_set_maxreaders(env, kReadersMax));
    check(mdb_env_open(env, folder.c_str(), MDB_NOTLS, 0644));  // read transactions belong to calls, not to threads
    sync(folder);
    check(mdb_dbi_open(begin().get(), nullptr, 0, &table_));
  }
  Database(Database&&) = delete;
  ~Database() {
    for (MDB_txn* const reader : idle_readers_) mdb_txn_abort(reader);
  }

  [[nodiscard]] std::optional<Found> get(std::string_view key) {
    require_key(key);
    Found found{read(), {}};
    MDB_val name = view(key);
    MDB_val value;
    if (!is_found(mdb_get(found.reader.get(), table_, &name, &value))) return std::nullopt;
    found.value = std::as_bytes(std::span{text(value)});
    return found;
  }

  /// The next entries from `first` on, or `beyond` it, and before `end`, where that is not empty: 4 KiB of them, or
  /// one that is larger.
  [[nodiscard]] std::vector<Entry> read(std::string_view first, bool beyond, std::string_view end) {
    const Reader reader = read();
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(reader.get(), table_, &cursor));
    const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> owner{cursor, mdb_cursor_close};
    MDB_val key = view(first);
    MDB_val value;
    bool found = is_found(mdb_cursor_get(cursor, &key, &value, first.empty() ? MDB_FIRST : MDB_SET_RANGE));
    if (found && beyond && text(key) == first) found = is_found(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
    std::vector<Entry> entries;
    for (std::size_t bytes = 0; found && (end.empty() || text(key) < end);
         found = is_found(mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
      bytes += key.mv_size + value.mv_size;
      if (!entries.empty() && bytes > kBlockBytes) break;
      const auto data = std::as_bytes(std::span{text(value)});
      entries.push_back({std::string{text(key)}, {data.begin(), data.end()}});
    }
    return entries;
  }

  /// Stores each write whole or not at all, together in one transaction where there is room for all.
  [[nodiscard]] std::vector<Outcome> commit(std::vector<Write> writes) {
    std::vector<Outcome> outcomes(writes.size());
    const std::scoped_lock lock{committing_};
    commit(std::span{writes}, std::span{outcomes});
    return outcomes;
  }

 private:
  static constexpr std::size_t kKeyBytesMax = 511;  // LMDB's own
  static constexpr std::size_t kBlockBytes = std::size_t{4} << 10;
  static constexpr unsigned kReadersMax = 512;  // more than threads ever read at once

  struct Full {};
  using Writer = std::unique_ptr<MDB_txn, decltype(&mdb_txn_abort)>;

  static void check(int code) {
    if (code == MDB_MAP_FULL) throw Full{};
    if (code != MDB_SUCCESS) throw wirecall::LocalError{std::string{"LMDB: "} + mdb_strerror(code)};
  }
  static bool is_found(int code) {
    if (code != MDB_NOTFOUND) check(code);
    return code != MDB_NOTFOUND;
  }
  static MDB_val view(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
  static std::string_view text(const MDB_val& value) {
    return {static_cast<const char*>(value.mv_data), value.mv_size};
  }

  /// So that a store which has just been made is still there after a loss of power.
  static void sync(const std::filesystem::path& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
    if (descriptor >= 0) ::close(descriptor);
    if (!synced) throw wirecall::LocalError{"cannot sync the folder " + folder.string()};
  }

  static void require_key(std::string_view key) {
    if (!key.empty() && key.size() <= kKeyBytesMax) return;
    throw wirecall::Error::with_data(
        wirecall::ErrorCode::invalid_params,
        R"({"loc":["key"],"expected":"a key of 1 to 511 bytes","got":"one of )" + std::to_string(key.size()) + R"("})");
  }
  void require_valid(const Write& write) const {
    for (const Change& change : write) {
      require_key(change.key);
      if (change.value_bytes() <= bounds_.value_bytes) continue;
      throw wirecall::Error::with_data(wirecall::ErrorCode::too_large,
                                       R"({"limit":"value_bytes","reason":"a value has at most )" +
                                           std::to_string(bounds_.value_bytes) + R"( bytes"})");
    }
  }

  /// A transaction that reads what is committed now: one that was used before, where there is one.
  [[nodiscard]] Reader read() {
    MDB_txn* reader = nullptr;
    if (const std::scoped_lock lock{idle_mutex_}; !idle_readers_.empty()) {
      reader = idle_readers_.back();
      idle_readers_.pop_back();
    }
    const int code =
        reader != nullptr ? mdb_txn_renew(reader) : mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &reader);
    Reader owner{reader, {this}};
    check(code);
    return owner;
  }
  void release(MDB_txn* reader) noexcept {
    mdb_txn_reset(reader);
    const std::scoped_lock lock{idle_mutex_};
    idle_readers_.push_back(reader);  // at most kReadersMax, for which there is room
  }

  [[nodiscard]] Writer begin() {
    MDB_txn* writer = nullptr;
    check(mdb_txn_begin(env_.get(), nullptr, 0, &writer));
    return {writer, mdb_txn_abort};
  }
  void commit(std::span<Write> writes, std::span<Outcome> outcomes) {
    try {
      Writer writer = begin();
      for (std::size_t i = 0; i != writes.size(); ++i) outcomes[i] = apply(*writer, writes[i]);
      check(mdb_txn_commit(writer.release()));
    } catch (const Full&) {
      // Halves are tried, so that only those are refused for which there is no room.
      const std::size_t half = writes.size() / 2;
      if (half != 0) {
        commit(writes.first(half), outcomes.first(half));
        return commit(writes.subspan(half), outcomes.subspan(half));
      }
      outcomes.front() = std::unexpected{
          wirecall::Error::with_data(wirecall::ErrorCode::limit_exceeded,
                                     R"({"limit":"map_bytes","reason":"the store is full: it needs more MAP_BYTES"})")};
    }
    std::vector<Write> stored;
    for (std::size_t i = 0; i != writes.size(); ++i) {
      if (outcomes[i]) stored.push_back(std::move(writes[i]));
    }
    on_commit_(std::move(stored));
  }
  Outcome apply(MDB_txn& writer, const Write& write) {
    try {
      require_valid(write);
    } catch (const wirecall::Error& refused) {
      return std::unexpected{refused};
    }
    std::uint64_t changed = 0;
    for (const Change& change : write) {
      MDB_val key = view(change.key);
      if (const Bytes* const bytes = change.put()) {
        MDB_val value{bytes->size(), const_cast<std::byte*>(bytes->data())};
        check(mdb_put(&writer, table_, &key, &value, 0));
        ++changed;
      } else if (is_found(mdb_del(&writer, table_, &key, nullptr))) {
        ++changed;
      }
    }
    return changed;
  }

  const Bounds bounds_;
  const std::function<void(std::vector<Write>)> on_commit_;
  std::unique_ptr<MDB_env, decltype(&mdb_env_close)> env_{nullptr, mdb_env_close};
  MDB_dbi table_ = 0;
  std::mutex committing_;
  std::mutex idle_mutex_;
  std::vector<MDB_txn*> idle_readers_;
};

}  // namespace store

/// Bytes, written from where LMDB has them.
template <>
struct wirecall::Adapt<store::Database::Found> {
  static void encode(Writer& writer, const store::Database::Found& found) { writer.bytes(found.value); }
  static constexpr std::string_view name = "bytes";
  static std::string schema() { return json_schema(type_info<store::Bytes>()); }
};
