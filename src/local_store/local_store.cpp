// See local_store.hpp.
#include "local_store/local_store.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace wirecall::local_store {

using durable::Failure;
using durable::Outcome;
using durable::Then;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kHousekeeping{1};
// The most of that time in which nothing else is done.
constexpr milliseconds kHouseTime{200};
// What has been read, and is not told yet, at most; one more is read all the same.
constexpr std::size_t kUntoldBytesMax = std::size_t{16} << 20U;
// For so long, and so often, it reads between two commits; one that has begun ends.
constexpr milliseconds kReadTime{10};
constexpr int kReadsATurn = 8;
// For such a part of what a commit takes others are waited for that may share the next one.
constexpr int kShareOfCommit = 8;
constexpr milliseconds kGatherMax{2};
// Before a file is tried again that another process has open.
constexpr milliseconds kOpenPause{50};
const Failure kMoved{.kind = Failure::Kind::moved, .why = "another process has taken over"};

static std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What has failed of what `act` does; none where it is done.
template <class Act>
static std::optional<Failure> failure_of(const Act& act) {
  try {
    act();
    return std::nullopt;
  } catch (const Failed& failed) {
    return failed.failure;
  } catch (const std::bad_alloc&) {
    return Failure{.kind = Failure::Kind::broken, .why = "no memory"};
  }
}

template <class T>
static std::size_t bytes_of(const T&) noexcept {
  return 0;
}
static std::size_t bytes_of(const durable::Job& job) noexcept { return job.params.size() + job.result.size(); }
static std::size_t bytes_of(const std::vector<durable::Job>& jobs) noexcept {
  std::size_t bytes = 0;
  for (const durable::Job& job : jobs) bytes += bytes_of(job);
  return bytes;
}
static std::size_t bytes_of(const std::vector<durable::QueueCounts>& queues) noexcept {
  std::size_t bytes = 0;
  for (const durable::QueueCounts& queue : queues) bytes += sizeof queue + queue.method.size();
  return bytes;
}
static std::size_t bytes_of(const durable::Fetched& fetched) noexcept {
  std::size_t bytes = 0;
  for (const durable::Event& event : fetched.events) bytes += event.params.size();
  return bytes;
}

template <class T, class Act>
class LocalStore::RequestOf final : public Request {
 public:
  RequestOf(Act act, Then<T> then) : act_(std::move(act)), then_(std::move(then)) {}

  void run(Database& database, std::int64_t now_ms) override {
    try {
      outcome_ = act_(database, now_ms);
    } catch (const Failed& failed) {
      if (failed.failure.kind == Failure::Kind::broken) throw;
      outcome_ = std::unexpected(failed.failure);
    }
  }
  void fail(const Failure& failure) override {
    if (outcome_) outcome_ = std::unexpected(failure);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return outcome_ ? bytes_of(*outcome_) : 0; }
  void tell() override {
    if (then_) then_(std::move(outcome_));
  }

 private:
  Act act_;
  Then<T> then_;
  Outcome<T> outcome_;
};

/// What has come of requests, on its way to the loop. Where the store has gone by then, nobody is told.
class LocalStore::Answers final : public detail::Executor::Continuation {
 public:
  Answers(Requests requests, std::weak_ptr<const void> alive, LocalStore& store, std::size_t bytes)
      : requests_(std::move(requests)), alive_(std::move(alive)), store_(&store), bytes_(bytes) {}
  void resume() noexcept override {
    for (const std::unique_ptr<Request>& request : requests_) {
      if (!alive_.expired()) request->tell();
    }
    if (bytes_ != 0 && !alive_.expired()) store_->told(bytes_);
  }

 private:
  Requests requests_;
  std::weak_ptr<const void> alive_;
  LocalStore* store_;
  std::size_t bytes_;
};

// At start, where nobody but the caller can be told that the disk fails.
static std::vector<durable::ConsumerState> consumers_of(Database& database) {
  try {
    return database.consumers();
  } catch (const Failed& failed) {
    throw std::runtime_error{"cannot read the consumers of the durable store: " + failed.failure.why};
  }
}

LocalStore::LocalStore(LocalStoreOptions options, std::shared_ptr<detail::Executor> executor, LogSink log,
                       Opening opening)
    : options_(std::move(options)),
      executor_(std::move(executor)),
      log_(std::move(log)),
      began_(std::chrono::steady_clock::now()),
      database_(std::in_place, options_, wall_clock_ms(), opening),
      has_lost_jobs_(opening != Opening::again),
      began_ms_(database_->last_ms()),
      first_seq_(database_->last_seq()),
      consumers_(consumers_of(*database_)) {
  for (const durable::QueueCounts& queue : database_->list_queues()) {
    if (queue.waiting + queue.running != 0) waiting_methods_.push_back(queue.method);
  }
  thread_ = std::thread{[this] { serve(); }};
}

LocalStore::~LocalStore() { end_thread(); }

// With what it has been asked to change.
void LocalStore::end_thread() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  asked_.notify_one();
  thread_.join();
  stopping_ = false;
}

void LocalStore::pause() {
  end_thread();
  database_.reset();
}

void LocalStore::resume() {
  if (!thread_.joinable() && !has_left_) thread_ = std::thread{[this] { serve(); }};
}

void LocalStore::leave() {
  pause();
  has_left_ = true;
  Requests waiting;
  {
    const std::scoped_lock lock{mutex_};
    while (!reads_.empty()) waiting.push_back(reads_.take());
    for (std::unique_ptr<Request>& change : std::exchange(changes_, {})) waiting.push_back(std::move(change));
  }
  waiting_.store(0, std::memory_order_relaxed);
  for (const std::unique_ptr<Request>& request : waiting) request->fail(kMoved);
  tell(std::move(waiting));
}

std::int64_t LocalStore::now_ms() const noexcept {
  return began_ms_ + std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began_).count();
}

// ---- the thread ----

// False where it is to end before it can.
bool LocalStore::open_again() {
  while (!database_) {
    try {
      database_.emplace(options_, now_ms(), Opening::again);
    } catch (const std::exception& error) {
      broken({.why = error.what()});
      std::unique_lock lock{mutex_};
      if (asked_.wait_for(lock, kOpenPause, [this] { return stopping_; })) return false;
    }
  }
  return true;
}

void LocalStore::serve() noexcept {
  if (!open_again()) return;
  std::chrono::steady_clock::time_point housekeeping = std::chrono::steady_clock::now();
  for (;;) {
    Requests changes;
    bool stopping = false;
    {
      std::unique_lock lock{mutex_};
      wanted_ = 1;
      asked_.wait_until(lock, housekeeping, [this] { return stopping_ || may_read() || !changes_.empty(); });
      gather(lock);
      changes.swap(changes_);
      stopping = stopping_;
    }
    if (!stopping) read();
    if (!changes.empty()) change(std::move(changes));
    if (stopping) {
      const std::scoped_lock lock{mutex_};
      if (changes_.empty()) return;
    }
    if (std::chrono::steady_clock::now() < housekeeping) continue;
    housekeeping = std::chrono::steady_clock::now() + kHousekeeping;
    keep_house();
  }
}

// Who has just been answered may be about to ask again: where several were, they are waited for a little, so that they
// share a sync once more, and do not wait for each other's by turns.
void LocalStore::gather(std::unique_lock<std::mutex>& lock) {
  if (together_ < 2 || changes_.empty()) return;
  wanted_ = together_;
  asked_.wait_for(lock, took_ / kShareOfCommit,
                  [this] { return stopping_ || may_read() || changes_.size() >= wanted_; });
}

bool LocalStore::may_read() const noexcept { return !reads_.empty() && untold_bytes_ < kUntoldBytesMax; }

// One after the other, so that what many have asked for is not in memory at once.
void LocalStore::read() {
  const auto until = std::chrono::steady_clock::now() + kReadTime;
  for (int i = 0; i != kReadsATurn && std::chrono::steady_clock::now() < until; ++i) {
    std::unique_ptr<Request> request;
    {
      const std::scoped_lock lock{mutex_};
      if (stopping_ || !may_read()) return;
      request = reads_.take();
    }
    if (has_lost_jobs_) change({});
    const auto failure = failure_of([&] {
      database_->refresh();
      request->run(*database_, now_ms());
    });
    if (failure) {
      request->fail(*failure);
      broken(*failure);
    }
    Requests one;
    const std::size_t bytes = request->bytes();
    one.push_back(std::move(request));
    tell(std::move(one), bytes);
  }
}

void LocalStore::told(std::size_t bytes) {
  {
    const std::scoped_lock lock{mutex_};
    untold_bytes_ -= bytes;
  }
  asked_.notify_one();
}

// All or none of them: where the disk fails, nothing has happened.
void LocalStore::change(Requests requests) {
  const auto before = std::chrono::steady_clock::now();
  together_ = requests.size();
  const auto failure = failure_of([&] {
    database_->begin();
    const std::int64_t now = now_ms();
    if (has_lost_jobs_) database_->reset_jobs();
    for (const std::unique_ptr<Request>& request : requests) request->run(*database_, now);
    database_->commit(now);
  });
  if (failure) {
    database_->rollback();
    for (const std::unique_ptr<Request>& request : requests) request->fail(*failure);
    broken(*failure);
  } else {
    dirty_ = true;
    has_lost_jobs_ = false;
    if (std::exchange(is_broken_, false)) log_(LogLevel::info, "the durable store works again");
  }
  took_ = std::min<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - before, kGatherMax * kShareOfCommit);
  waiting_.fetch_sub(requests.size(), std::memory_order_relaxed);
  tell(std::move(requests));
}

void LocalStore::tell(Requests requests, std::size_t bytes) {
  if (bytes != 0) {
    const std::scoped_lock lock{mutex_};
    untold_bytes_ += bytes;
  }
  executor_->post(std::make_shared<Answers>(std::move(requests), alive_, *this, bytes));
}

void LocalStore::keep_house() {
  const auto failure = failure_of([&] {
    // Also where there is always something to do, as much goes as comes.
    const auto until = std::chrono::steady_clock::now() + kHouseTime;
    while (!database_->expire(now_ms())) {
      const std::scoped_lock lock{mutex_};
      if (stopping_ || std::chrono::steady_clock::now() >= until) break;
    }
    if (options_.fsync != Fsync::everysec || !dirty_) return;
    database_->sync();
    dirty_ = false;
  });
  if (!failure) return;
  database_->rollback();
  broken(*failure);
}

void LocalStore::broken(const Failure& failure) {
  if (std::exchange(is_broken_, true)) return;
  log_(LogLevel::error, "the durable store fails, and what it is asked for is refused: " + failure.why);
}

// ---- what it is asked for ----

bool LocalStore::refuse_moved(std::unique_ptr<Request>& request) {
  if (!has_left_) return false;
  request->fail(kMoved);
  Requests failed;
  failed.push_back(std::move(request));
  tell(std::move(failed));
  return true;
}

template <class T, class Act>
void LocalStore::change(Act act, Then<T> then) {
  std::unique_ptr<Request> request = std::make_unique<RequestOf<T, Act>>(std::move(act), std::move(then));
  if (refuse_moved(request)) return;
  {
    const std::scoped_lock lock{mutex_};
    changes_.push_back(std::move(request));
    waiting_.fetch_add(1, std::memory_order_relaxed);
    if (changes_.size() != wanted_) return;  // it is awake, or waits for more
  }
  asked_.notify_one();
}

template <class T, class Act>
void LocalStore::read(const std::string& asker, Act act, Then<T> then) {
  std::unique_ptr<Request> request = std::make_unique<RequestOf<T, Act>>(std::move(act), std::move(then));
  if (refuse_moved(request)) return;
  {
    const std::scoped_lock lock{mutex_};
    reads_.add(asker, std::move(request));
  }
  asked_.notify_one();
}

void LocalStore::append(durable::NewEvent event, Then<durable::Appended> then) {
  change<durable::Appended>(
      [event = std::move(event)](Database& database, std::int64_t now) { return database.append(event, now); },
      std::move(then));
}

void LocalStore::fetch(durable::Fetch fetch, Then<durable::Fetched> then) {
  const std::string asker = fetch.asker;
  read<durable::Fetched>(
      asker, [fetch = std::move(fetch)](Database& database, std::int64_t) { return database.fetch(fetch); },
      std::move(then));
}

void LocalStore::list_topics(std::string asker, Then<std::vector<durable::TopicCounts>> then) {
  read<std::vector<durable::TopicCounts>>(
      asker, [](const Database& database, std::int64_t) { return database.list_topics(); }, std::move(then));
}

void LocalStore::open_consumer(durable::ConsumerSettings settings, Then<durable::ConsumerState> then) {
  change<durable::ConsumerState>(
      [settings = std::move(settings)](Database& database, std::int64_t) { return database.open_consumer(settings); },
      std::move(then));
}

void LocalStore::progress(durable::Progress progress, Then<durable::Appended> then) {
  change<durable::Appended>([progress = std::move(progress)](
                                Database& database, std::int64_t now) { return database.progress(progress, now); },
                            std::move(then));
}

void LocalStore::forget_consumer(std::string name, Then<durable::Done> then) {
  change<durable::Done>(
      [name = std::move(name)](Database& database, std::int64_t) {
        database.forget_consumer(name);
        return durable::Done{};
      },
      std::move(then));
}

void LocalStore::push(durable::NewJob job, Then<durable::Pushed> then) {
  change<durable::Pushed>(
      [job = std::move(job)](Database& database, std::int64_t now) { return database.push(job, now); },
      std::move(then));
}

void LocalStore::take(durable::Take take, Then<durable::Taken> then) {
  change<durable::Taken>(
      [take = std::move(take)](Database& database, std::int64_t now) { return database.take(take, now); },
      std::move(then));
}

void LocalStore::finish(durable::JobOutcome outcome, Then<durable::Done> then) {
  change<durable::Done>(
      [outcome = std::move(outcome)](Database& database, std::int64_t now) {
        database.finish(outcome, now);
        return durable::Done{};
      },
      std::move(then));
}

void LocalStore::find_job(std::uint64_t id, std::string asker, Then<durable::Job> then) {
  read<durable::Job>(asker, [id](Database& database, std::int64_t) { return database.find_job(id); }, std::move(then));
}

void LocalStore::list_queues(std::string asker, Then<std::vector<durable::QueueCounts>> then) {
  read<std::vector<durable::QueueCounts>>(
      asker, [](const Database& database, std::int64_t) { return database.list_queues(); }, std::move(then));
}

void LocalStore::peek(durable::Peek peek, Then<std::vector<durable::Job>> then) {
  const std::string asker = peek.asker;
  read<std::vector<durable::Job>>(
      asker, [peek = std::move(peek)](Database& database, std::int64_t) { return database.peek(peek); },
      std::move(then));
}

void LocalStore::retry_job(std::uint64_t id, Then<durable::Done> then) {
  change<durable::Done>(
      [id](Database& database, std::int64_t now) {
        database.retry_job(id, now);
        return durable::Done{};
      },
      std::move(then));
}

void LocalStore::drop_job(std::uint64_t id, Then<durable::Done> then) {
  change<durable::Done>(
      [id](Database& database, std::int64_t) {
        database.drop_job(id);
        return durable::Done{};
      },
      std::move(then));
}

}  // namespace wirecall::local_store
