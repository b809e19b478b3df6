// JetStreamStore: a Store in JetStream, which the brokers of a realm share. The topics of each rule are a stream, and
// so are all others; a consumer is a pull consumer with explicit acknowledgements, which knows for all nodes what has
// been given to whom. What is kept is safe as far as nats-server keeps its word (docs/durable.md "In a cluster"). The
// streams are made when NATS is reached; until then, and while it is not, everything fails at once. Its jobs are a
// JetStreamJobs.
// Thread: the loop's.
#pragma once

#include <map>
#include <set>

#include "durable/store.hpp"
#include "jetstream_store/jetstream_accounts.hpp"
#include "jetstream_store/jetstream_consumer_counts.hpp"
#include "jetstream_store/jetstream_jobs.hpp"
#include "wirecall/log.hpp"

namespace wirecall::jetstream_store {

struct JetStreamStoreOptions {
  std::string realm;
  std::vector<durable::TopicRule> rules = {};  ///< that of all other topics is last, with an empty pattern
  std::uint64_t dedup_ms = 120'000;            ///< for which a msg_id is remembered
  std::uint32_t replicas = 1;                  ///< of each stream, on so many nats-servers
  std::string node = {};                       ///< the broker's name, for people
  std::uint64_t lease_ms = 5000;               ///< of a method that wants one provider
  AccountLimits accounts = {};
  ConsumerLimits consumers = {};
  JobLimits jobs = {};
};

class JetStreamStore final : public durable::Store {
 public:
  /// `inbox` is a subject below which only this store has answers come. `scheduler` and `log` outlive it.
  JetStreamStore(JetStreamStoreOptions options, std::unique_ptr<net::HeaderBus> bus, std::string inbox,
                 Scheduler& scheduler, const LogSink& log);
  ~JetStreamStore() override;

  [[nodiscard]] std::uint64_t last_seq() const noexcept override { return 0; }
  [[nodiscard]] const std::vector<durable::ConsumerState>& consumers() const noexcept override { return consumers_; }
  [[nodiscard]] const std::vector<std::string>& waiting_methods() const noexcept override { return waiting_methods_; }
  [[nodiscard]] bool is_shared() const noexcept override { return true; }
  [[nodiscard]] std::size_t waiting() const noexcept override { return jetstream_.waiting(); }

  void pause() override {}
  void resume() override {}
  void leave() override;

  void append(durable::NewEvent event, durable::Then<durable::Appended> then) override;
  void fetch(durable::Fetch fetch, durable::Then<durable::Fetched> then) override;
  void list_topics(std::string asker, durable::Then<std::vector<durable::TopicCounts>> then) override;
  void open_consumer(durable::ConsumerSettings settings, durable::Then<durable::ConsumerState> then) override;
  void progress(durable::Progress progress, durable::Then<durable::Appended> then) override;
  void forget_consumer(std::string name, durable::Then<durable::Done> then) override;
  void list_consumers(durable::Then<std::vector<durable::ConsumerState>> then) override;

  void push(durable::NewJob job, durable::Then<durable::Pushed> then) override;
  void take(durable::Take take, durable::Then<durable::Taken> then) override;
  void finish(durable::JobOutcome outcome, durable::Then<durable::Done> then) override;
  void find_job(std::uint64_t id, std::string asker, durable::Then<durable::Job> then) override;
  void list_queues(std::string asker, durable::Then<std::vector<durable::QueueCounts>> then) override;
  void peek(durable::Peek peek, durable::Then<std::vector<durable::Job>> then) override;
  void retry_job(std::uint64_t id, durable::Then<durable::Done> then) override;
  void drop_job(std::uint64_t id, durable::Then<durable::Done> then) override;
  void on_jobs(durable::ToldOfJobs told) override { jobs_.on_jobs(std::move(told)); }

  void lease(std::string name, std::uint64_t revision, durable::Then<durable::Leased> then) override;
  void end_lease(std::uint64_t revision) override;
  [[nodiscard]] std::chrono::nanoseconds lease_time() const noexcept override {
    return std::chrono::milliseconds{options_.lease_ms};
  }

 private:
  struct Stream {
    std::string name;
    std::string prefix;  // of its subjects, with a dot at the end
    durable::TopicRule rule;
  };
  /// A consumer of this node's.
  struct Opened {
    std::size_t stream;
    durable::ConsumerSettings settings = {};         // `after`: how far it had come
    std::map<std::uint64_t, std::string> held = {};  // events that it has been given, and where each is acknowledged
    bool pulls = false;
  };
  struct Located {
    std::size_t stream;
    Value info;
  };
  struct Reading;

  void connection_changed(bool connected);
  void make_stream(std::size_t at);
  void stream_failed(std::size_t at, const durable::Failure& failure);
  void stream_absent();
  [[nodiscard]] std::string configuration(const Stream& stream) const;
  [[nodiscard]] const Stream& stream_of_topic(std::string_view topic) const noexcept;
  /// The one that has all topics of the pattern; null where that is none.
  [[nodiscard]] const Stream* stream_of_pattern(std::string_view pattern) const noexcept;
  [[nodiscard]] bool is_usable() const noexcept { return !left_ && missing_.empty() && jetstream_.is_connected(); }
  [[nodiscard]] durable::Failure why_not() const;
  template <class T>
  [[nodiscard]] bool require_usable(durable::Then<T>& then);
  /// In a turn of its own.
  void answer_later(std::move_only_function<void()> answer);
  template <class T>
  void fail_later(durable::Then<T> then, durable::Failure failure);
  void answer_now();

  /// Asks each stream, and calls `then` with all answers; nothing for one that says there is none.
  void ask_all(const std::function<std::string(const Stream& stream)>& subject,
               durable::Then<std::vector<std::optional<Value>>> then);
  [[nodiscard]] static std::string filter_of(const Stream& stream, std::string_view pattern);
  [[nodiscard]] static std::string topic_of(const Stream& stream, const std::string& subject);
  void keep(const durable::NewEvent& event, const std::string& subject, durable::Then<durable::Appended> then);
  void read_next(std::shared_ptr<Reading> reading);
  void pull(const durable::Fetch& fetch, Opened& opened, durable::Then<durable::Fetched> then);
  void look_after(const std::string& name);
  void locate(const std::string& name, durable::Then<std::optional<Located>> then);
  void make_consumer(std::size_t stream, const durable::ConsumerSettings& settings, const Value* before,
                     durable::Then<durable::ConsumerState> then);
  [[nodiscard]] std::optional<durable::ConsumerState> state_of(const Stream& stream, const Value& info) const;
  void list_consumers_from(std::size_t stream, std::size_t offset,
                           std::shared_ptr<std::vector<durable::ConsumerState>> found,
                           durable::Then<std::vector<durable::ConsumerState>> then);
  void give_back(const std::string& reply, std::uint64_t pause_ms);
  struct DeadLetter {
    durable::NewEvent event;
    std::string reply;  // where the event that is given up is acknowledged
    durable::Then<durable::Appended> then;
  };
  void bury(DeadLetter letter);
  [[nodiscard]] bool is_event(std::string_view subject, std::string_view payload);
  [[nodiscard]] WantedStream lease_stream() const;
  /// How often a lease is asked for once more.
  struct LeaseTries {
    int ended = 4;     // that is another's
    int reached = 30;  // while JetStream is not there
  };
  void ask_for_lease(const std::string& name, std::uint64_t revision, LeaseTries tries,
                     durable::Then<durable::Leased> then);
  void ask_for_lease_later(const std::string& name, LeaseTries tries, durable::Then<durable::Leased> then);

  class CallTimer final : public Timer {
   public:
    explicit CallTimer(std::function<void()> act) : act_(std::move(act)) {}
    void expired() override { act_(); }

   private:
    std::function<void()> act_;
  };

  const JetStreamStoreOptions options_;
  Scheduler* scheduler_;
  const LogSink* log_;
  std::vector<Stream> streams_;
  std::vector<WantedStream> wanted_;  // these, and those of jobs
  std::set<std::size_t> missing_;     // of those that are wanted: that are not known to be there
  std::string why_missing_;
  bool left_ = false;
  std::map<std::string, Opened, std::less<>> opened_;
  std::vector<std::move_only_function<void()>> answers_;  // for the next turn
  std::vector<durable::ConsumerState> consumers_;         // none: they are not known at once
  std::vector<std::string> waiting_methods_;
  std::vector<DeadLetter> letters_;  // that could not be kept
  bool told_of_others_ = false;      // who publish to the streams
  CallTimer letter_timer_;
  CallTimer retry_timer_;
  CallTimer answer_timer_{[this] { answer_now(); }};
  std::vector<std::move_only_function<void()>> lease_tries_;
  CallTimer lease_timer_{[this] {
    for (auto& one : std::exchange(lease_tries_, {})) one();
  }};
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // as long as anybody is to be told
  JetStreamAccounts accounts_;
  JetStreamConsumerCounts consumer_counts_;
  JetStreamJobs jobs_;
  JetStream jetstream_;  // last: it calls back
};

}  // namespace wirecall::jetstream_store
