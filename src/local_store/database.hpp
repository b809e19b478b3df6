// Database: the tables of a LocalStore in SQLite, in one file of a folder. All is done at once, and what changes them
// is done between `begin` and `commit`, several changes together; commit returns when they are safe. After `rollback`
// nothing of them has happened. Time is what it is told. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "durable/store.hpp"
#include "local_store/options.hpp"
#include "local_store/statement.hpp"

struct sqlite3;

namespace wirecall::local_store {

/// What a failed function of a Database throws.
struct Failed {
  durable::Failure failure;
};

class Database {
 public:
  /// Throws std::runtime_error that says what is wrong with the folder or the file, and what helps.
  Database(LocalStoreOptions options, std::int64_t now_ms, Opening opening = Opening::first);
  ~Database();
  Database(Database&&) = delete;

  [[nodiscard]] std::uint64_t last_seq() const noexcept { return last_seq_; }
  /// The latest time that it has been told, by an earlier process as well.
  [[nodiscard]] std::int64_t last_ms() const noexcept { return last_ms_; }

  void begin();
  void commit(std::int64_t now_ms);
  /// Costs what has been changed since `begin`, however much there is.
  void rollback() noexcept;
  /// Where a rollback had no memory, what there is is read now: before each read. Throws Failed.
  void refresh();
  /// What is not safe yet becomes safe, where commit does not see to that.
  void sync();
  /// Forgets what is too old, some at a time, and keeps the time now and then. False where there is more.
  [[nodiscard]] bool expire(std::int64_t now_ms);

  // Each throws Failed.

  [[nodiscard]] durable::Appended append(const durable::NewEvent& event, std::int64_t now_ms);
  [[nodiscard]] durable::Fetched fetch(const durable::Fetch& fetch);
  [[nodiscard]] std::vector<durable::TopicCounts> list_topics() const;

  [[nodiscard]] durable::ConsumerState open_consumer(const durable::ConsumerSettings& settings);
  [[nodiscard]] std::vector<durable::ConsumerState> consumers();
  durable::Appended progress(const durable::Progress& progress, std::int64_t now_ms);
  void forget_consumer(const std::string& name);

  [[nodiscard]] durable::Pushed push(const durable::NewJob& job, std::int64_t now_ms);
  [[nodiscard]] durable::Taken take(const durable::Take& take, std::int64_t now_ms);
  void finish(const durable::JobOutcome& outcome, std::int64_t now_ms);
  /// Jobs that ran at another process, which is gone, wait again.
  void reset_jobs();
  /// Without its params.
  [[nodiscard]] durable::Job find_job(std::uint64_t id);
  [[nodiscard]] std::vector<durable::QueueCounts> list_queues() const;
  [[nodiscard]] std::vector<durable::Job> peek(const durable::Peek& peek);
  void retry_job(std::uint64_t id, std::int64_t now_ms);
  void drop_job(std::uint64_t id);

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept;
  };
  struct Stream {
    std::int64_t id = 0;
    durable::TopicRule rule;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t last_seq = 0;
    bool changed = false;  ///< since the last commit
    /// Whether an event of that size is no larger than all of them may be.
    [[nodiscard]] bool takes(std::uint64_t size) const noexcept {
      return rule.max_bytes == 0 || size <= rule.max_bytes;
    }
  };
  /// What a principal has in the store.
  struct Usage {
    std::uint64_t events = 0;
    std::uint64_t event_bytes = 0;
    std::uint64_t jobs = 0;  ///< that are not done
    std::uint64_t job_bytes = 0;
    std::map<std::string, std::uint64_t> queues = {};  ///< jobs in any state, by method; none is 0
    [[nodiscard]] bool is_none() const noexcept { return events == 0 && queues.empty(); }
  };

  void open(const std::string& path, bool is_to_be_checked);
  [[nodiscard]] bool check_file(const std::string& path);
  void make_tables();
  void make_indexes();
  void prepare();
  void load();
  void take_back();
  void end_transaction();
  /// Before what it takes back is done.
  void on_rollback(std::move_only_function<void()> undo) { undo_.push_back(std::move(undo)); }
  // Is about to be changed.
  void touch(Stream& stream);
  void touch_events_of(const std::string& principal);
  [[nodiscard]] Stream& stream_of(const std::string& topic);
  [[nodiscard]] static std::uint64_t size_of(const durable::NewEvent& event) noexcept;
  [[nodiscard]] std::vector<durable::Tried> tried_of(const std::string& consumer);
  [[nodiscard]] const Usage& usage_of(const std::string& principal) const noexcept;
  void require_room_for(const std::string& principal, std::uint64_t size) const;
  int trim(Stream& stream, int left);
  [[nodiscard]] bool remove_oldest(Stream& stream, std::int64_t older_than_ms);
  [[nodiscard]] std::optional<std::uint64_t> seen(const std::string& scope, const std::string& msg_id);
  void remember(const std::string& scope, const std::string& msg_id, std::uint64_t number, std::int64_t now_ms);
  struct JobRow {
    std::string method;
    std::string principal;
    durable::Job::State state;
    std::uint64_t bytes;
    std::uint64_t result_bytes = 0;
  };
  [[nodiscard]] static durable::Job::State state_of(std::int64_t number) noexcept;
  [[nodiscard]] static durable::Job read_job(const Statement& row);
  [[nodiscard]] JobRow job_row(std::uint64_t id);
  void count_job(const JobRow& jobs, std::int64_t by);
  void change_count(const JobRow& jobs, std::int64_t by);
  void forget_if_empty(const std::string& method) noexcept;
  void change_state(JobRow row, durable::Job::State to, std::uint64_t result_bytes = 0);
  void remove_job(std::uint64_t id, const JobRow& row);
  void execute(const char* sql);

  const LocalStoreOptions options_;
  std::unique_ptr<sqlite3, Close> database_;
  struct Statements;
  std::unique_ptr<Statements> statements_;  // behind the database, which they go before
  std::vector<Stream> streams_;             // of the rules in their order, of all others, of rules there are no more
  std::size_t others_ = 0;                  // where the one of all others is
  std::uint64_t last_seq_ = 0;
  std::int64_t last_ms_ = 0;
  std::int64_t kept_ms_ = 0;  // the last time that is in the file
  bool is_stale_ = false;     // what is in memory may not be what is in the tables
  std::map<std::string, durable::QueueCounts> queues_;
  std::map<std::string, std::uint64_t> done_bytes_;    // of params and results of those done, by method
  std::map<std::string, Usage> usages_;                // by principal
  std::set<std::string> changed_usages_;               // of those whose events have changed since the last commit
  std::vector<std::move_only_function<void()>> undo_;  // since `begin`: what takes back what is counted in memory
};

}  // namespace wirecall::local_store
