// Store: what keeps events and jobs beyond the process, as a broker asks for it. Events have a topic and a sequence
// number, which grows over all topics; a consumer is a name under which the store knows how far somebody has come with
// the events of a pattern; a job is a call that is to be made later. Nothing here knows JSON-RPC: params and results
// are bytes.
//
// Each function returns at once. Its `then` is called later, in the order in which the functions were called, on the
// thread that has called; of what changes the store, once that is safe as its policy says (LocalStore). Only reads may
// overtake changes, and those of other askers, with which they take turns, and see nothing that is not safe. Thread:
// one.
//
// A store may be shared by several processes (JetStreamStore). It knows itself what it has given to the members of each
// consumer, gives that again to whichever process asks where it has not been acknowledged in time, and counts
// sequence numbers for the topics of each rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::durable {

/// Why something was not done: nothing of it has happened.
struct Failure {
  enum class Kind : std::uint8_t {
    broken,    ///< the disk: `why` says what it says
    full,      ///< a limit, whose name is `limit`
    conflict,  ///< with what there is of that name
    unknown,   ///< there is none of that name or number
    moved,     ///< another process has the store (Store::leave)
    refused,   ///< this kind of store does not do that
  };

  Kind kind = Kind::broken;
  std::string why;
  std::string limit = {};
};

template <class T>
using Outcome = std::expected<T, Failure>;
template <class T>
using Then = std::move_only_function<void(Outcome<T> outcome)>;
struct Done {};

// ---- events ----

struct NewEvent {
  std::string topic;
  std::string params;  ///< empty for none
  /// One that comes again with its topic, within the window, is not kept twice; empty for none. Whose it is the caller
  /// says in it.
  std::string msg_id = {};
  std::string principal = {};  ///< on whose account it is; empty for nobody's
};

struct Appended {
  std::uint64_t seq = 0;
  bool duplicate = false;  ///< `seq` is that of the event that had come with this msg_id before
};

struct Event {
  std::uint64_t seq = 0;
  std::int64_t at_ms = 0;  ///< when it was kept, in milliseconds since 1970
  std::string topic;
  std::string params;
  std::uint32_t deliveries = 0;  ///< of a shared store, for a consumer: how often it has been given, with this time
};

/// What is read of the events behind a sequence number.
struct Fetch {
  std::string pattern;
  std::uint64_t after = 0;
  std::size_t count = 0;   ///< at most so many
  std::size_t bytes = 0;   ///< of params at most, but one event at least
  std::string asker = {};  ///< reads of different askers take turns
  /// Of a shared store, the consumer for which it is, whatever `after` is: then the first event is waited for a while.
  std::string consumer = {};
};

struct Fetched {
  std::vector<Event> events;
  std::uint64_t scanned = 0;  ///< there are no others of the pattern up to this one
};

/// Events of one rule (TopicRule), or of none.
struct TopicCounts {
  std::string pattern;  ///< of the rule; empty for all other topics
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t last_seq = 0;
};

/// Which topics are kept, and for how long: the first rule whose pattern a topic matches. 0 for no limit. What is
/// beyond one goes, oldest first.
struct TopicRule {
  std::string pattern;
  std::uint64_t max_age_ms = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t max_count = 0;
};

// ---- consumers ----

inline constexpr std::uint64_t kOnlyNew = UINT64_MAX;

struct ConsumerSettings {
  std::string name;
  std::string pattern;
  std::uint64_t after = 0;  ///< of a new one: the events behind that are for it; kOnlyNew: those that come
  std::uint32_t ack_wait_ms = 30'000;
  std::uint32_t max_deliver = 5;  ///< 0 for any number
  std::uint32_t max_in_flight = 64;
  std::string principal = {};  ///< who has made it, on whose account it is
  bool with_tried = true;      ///< whether it is asked what of it has been tried: there may be much
};

/// An event behind `floor` that has been tried.
struct Tried {
  std::uint64_t seq = 0;
  std::uint32_t deliveries = 0;
  bool acknowledged = false;
};

struct ConsumerState {
  ConsumerSettings settings;
  std::uint64_t floor = 0;  ///< the events up to it are acknowledged, or not for it
  std::vector<Tried> tried = {};
  std::uint64_t in_flight = 0;  ///< of a shared store: events that are given, and not acknowledged
};

/// How far a consumer has come.
struct Progress {
  std::string consumer;
  std::uint64_t floor = 0;
  std::optional<Tried> tried = std::nullopt;    ///< behind the floor
  std::optional<NewEvent> dead = std::nullopt;  ///< is kept together with it: the event that is given up
  std::uint64_t pause_ms = 0;                   ///< before a shared store gives what is not acknowledged again
};

// ---- jobs ----

struct NewJob {
  std::string method;
  std::string params;
  std::string msg_id = {};     ///< the same, with its method
  std::string principal = {};  ///< on whose account it is
  std::uint64_t delay_ms = 0;
  std::uint32_t max_deliver = 5;
  std::uint32_t timeout_ms = 3'600'000;  ///< in which a provider has to answer it
};

struct Pushed {
  std::uint64_t id = 0;
  bool duplicate = false;
};

struct Job {
  enum class State : std::uint8_t { waiting, running, done, dead };

  std::uint64_t id = 0;
  std::string method;
  std::string params;
  State state = State::waiting;
  std::uint32_t deliveries = 0;
  std::uint32_t max_deliver = 0;
  std::int64_t at_ms = 0;
  std::string result = {};  ///< of one that is done; of one that is dead, or failed before, its last error
  std::uint32_t timeout_ms = 3'600'000;
  std::string principal = {};  ///< on whose account it is
};

/// What becomes of a running job.
struct JobOutcome {
  std::uint64_t id = 0;
  Job::State state = Job::State::done;  ///< waiting: it is tried again
  std::string result = {};
  std::uint64_t delay_ms = 0;  ///< of one that is tried again
  bool untried = false;        ///< nobody has got it: that does not count as a delivery
};

struct Take {
  std::string method;
  std::size_t count = 0;
  std::size_t bytes = SIZE_MAX;  ///< of params at most, but one job at least
};

struct Taken {
  std::vector<Job> jobs;
  std::optional<std::uint64_t> next_ms = std::nullopt;  ///< until the next one is due that waits; none for none
};

struct QueueCounts {
  std::string method;
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  std::uint64_t done = 0;
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;  ///< of params of those that are not done
};

struct Peek {
  std::string method;
  Job::State state = Job::State::waiting;
  std::uint64_t after = 0;  ///< an id
  std::size_t count = 0;
  std::size_t bytes = SIZE_MAX;                         ///< of params and results at most, but one job at least
  std::optional<std::string> principal = std::nullopt;  ///< of whose account; of any where there is none
  std::string asker = {};                               ///< as of Fetch
};

// ---- leases ----

/// A name that is one process's for a time.
struct Leased {
  std::uint64_t revision = 0;       ///< grows with each lease of the name, and each time that one is renewed
  std::chrono::nanoseconds time{};  ///< from when it was asked for
};

/// There may be jobs of those methods that wait, which other processes have pushed, or did not end; of no other methods
/// where these are `all`.
using ToldOfJobs = std::function<void(const std::set<std::string>& methods, bool all)>;

class Store {
 public:
  virtual ~Store() = default;
  Store(Store&&) = delete;

  /// Of the last event that was kept before this store was opened.
  [[nodiscard]] virtual std::uint64_t last_seq() const noexcept = 0;
  /// The consumers, without what of them has been tried, and the methods with jobs that wait that there were then.
  [[nodiscard]] virtual const std::vector<ConsumerState>& consumers() const noexcept = 0;
  [[nodiscard]] virtual const std::vector<std::string>& waiting_methods() const noexcept = 0;
  /// Whether other processes use it at the same time.
  [[nodiscard]] virtual bool is_shared() const noexcept { return false; }
  /// Changes that are not safe yet.
  [[nodiscard]] virtual std::size_t waiting() const noexcept = 0;

  // Another process may take over from this one, and the store with it.

  /// Changes what it has been asked to change, and lets go of what only one process may have. What it is asked for from
  /// then on, and reads that wait, wait for one of the next two. Blocks as long as the disk needs.
  virtual void pause() = 0;
  /// No other process has taken over: goes on as soon as none has the store.
  virtual void resume() = 0;
  /// Another process has it: what waits, and all that it is asked for from now on, fails as `moved`.
  virtual void leave() = 0;

  virtual void append(NewEvent event, Then<Appended> then) = 0;
  virtual void fetch(Fetch fetch, Then<Fetched> then) = 0;
  virtual void list_topics(std::string asker, Then<std::vector<TopicCounts>> then) = 0;

  /// One of that name is what it was, with other settings, but the principal's; with another pattern it is a conflict.
  virtual void open_consumer(ConsumerSettings settings, Then<ConsumerState> then) = 0;
  /// Answers with the number of the dead event; 0 for none.
  virtual void progress(Progress progress, Then<Appended> then) = 0;
  virtual void forget_consumer(std::string name, Then<Done> then) = 0;
  /// Those of a shared store, of all processes.
  virtual void list_consumers(Then<std::vector<ConsumerState>> then) { then(std::vector<ConsumerState>{}); }

  /// `told` is called by a shared store, from now on. Once.
  virtual void on_jobs(ToldOfJobs told) { static_cast<void>(told); }
  virtual void push(NewJob job, Then<Pushed> then) = 0;
  /// Jobs that are due, which run from then on.
  virtual void take(Take take, Then<Taken> then) = 0;
  virtual void finish(JobOutcome outcome, Then<Done> then) = 0;
  /// With its result, and not necessarily with its params.
  virtual void find_job(std::uint64_t id, std::string asker, Then<Job> then) = 0;
  virtual void list_queues(std::string asker, Then<std::vector<QueueCounts>> then) = 0;
  virtual void peek(Peek peek, Then<std::vector<Job>> then) = 0;
  // Of a shared store, also once it was left.

  /// The name is this process's, or, with the last revision of a lease, longer. `conflict` where it is another's, or is
  /// not this one's any more.
  virtual void lease(std::string name, std::uint64_t revision, Then<Leased> then) {
    static_cast<void>(name);
    static_cast<void>(revision);
    then(std::unexpected(Failure{.kind = Failure::Kind::refused, .why = "this store has no leases"}));
  }
  /// That revision of a lease, if it is still in force.
  virtual void end_lease(std::uint64_t revision) { static_cast<void>(revision); }
  [[nodiscard]] virtual std::chrono::nanoseconds lease_time() const noexcept { return {}; }

  /// A dead job is tried anew, or forgotten; any other one that is not running is forgotten.
  virtual void retry_job(std::uint64_t id, Then<Done> then) = 0;
  virtual void drop_job(std::uint64_t id, Then<Done> then) = 0;

 protected:
  Store() = default;
};

}  // namespace wirecall::durable
