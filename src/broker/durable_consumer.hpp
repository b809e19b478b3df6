// DurableConsumer: one consumer of durable topics: who has joined it, which events they are at work on, and how far all
// that lies behind has been acknowledged. Events are sent in their order, as far as those that are sent again allow.
// Owned by DurableTopics. One thread.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "broker/consumer_reads.hpp"
#include "broker/context.hpp"
#include "durable/store.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class DurableTopics;
class DurableConsumer;

/// What a table of topics knows a consumer by.
struct ConsumerSubscriber : Subscriber {
  explicit ConsumerSubscriber(DurableConsumer& of) noexcept : Subscriber(nullptr), consumer(&of) {}

  DurableConsumer* const consumer;
};

class DurableConsumer final : private Timer {
 public:
  /// `topics` outlives it.
  DurableConsumer(DurableTopics& topics, const durable::ConsumerState& state);
  DurableConsumer(DurableConsumer&&) = delete;
  ~DurableConsumer();

  [[nodiscard]] const durable::ConsumerSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::uint64_t floor() const noexcept;
  /// Events that were read, and not acknowledged.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  [[nodiscard]] std::size_t members() const noexcept { return members_.size(); }
  /// Whether it knows nothing but how far it is: what it had read before its last member left is in the store.
  [[nodiscard]] bool is_unloaded() const noexcept { return unloaded_; }
  /// The store is told how far it is: else all that was none of its pattern is read again by who joins next.
  void keep_floor();
  /// The same, where that is far behind.
  void keep_floor_if_far();
  /// Nobody has joined it: what it has read is not in memory any longer.
  void unload() noexcept;
  /// Whether a member has been sent what it has not answered.
  [[nodiscard]] bool at_work() const noexcept {
    return std::ranges::any_of(members_, [](const Joined& one) { return one.in_flight != 0; });
  }

  /// Other settings, but for name and pattern.
  void set(const durable::ConsumerSettings& settings) { settings_ = settings; }
  void join(Peer& peer);
  /// The peer is sent no more; what it has been sent it may still answer. False where it has not joined.
  bool part(Peer& peer) noexcept;
  /// The same, and what it has been sent goes to others.
  void lose(Peer& peer) noexcept;
  /// An event of its pattern has been kept, the last one that there is.
  void offer(const std::string& topic, const std::string& params, std::uint64_t seq);
  /// An event may come that it is not told of: from the last one that there is it reads on itself.
  void stop_following() noexcept;
  /// The response to an event that was sent to the peer for the time `delivery`.
  void answered(const Peer& peer, std::uint64_t seq, std::uint64_t delivery, const Received& message);
  /// Sends what may be sent, and reads more where there is room.
  void pump();
  /// Reads more where there is room.
  void fetch();

  /// The peer may be sent more, for which it is no more in line.
  void unblocked(const Peer& peer);
  [[nodiscard]] static bool is_free(Peer& peer);

  ConsumerSubscriber subscriber{*this};  ///< of DurableTopics, as long as it has members
  ConsumerReads::Waits waits;            ///< of ConsumerReads

 private:
  /// Of all consumers' events that one connection has been sent and has not answered; one more is sent all the same. So
  /// one that answers nothing does not fill what all consumers share.
  static constexpr std::size_t kPeerBytesMax = std::size_t{8} << 20U;
  /// What an event ends with whose connection is lost, in JSON.
  static constexpr std::string_view kLost = R"({"code":-32001,"message":"Provider lost"})";

  struct Joined {
    Peer* peer;
    std::string account;
    std::size_t in_flight = 0;
    bool parted = false;
    bool in_line = false;  ///< DurableTopics tells the consumer once the peer may be sent more
    /// What it was sent and has not answered in time, the last ones: a result of it is one all the same.
    std::set<std::uint64_t> late = {};
  };
  struct PendingEvent {
    enum class State : std::uint8_t {
      ready,
      sent,
      resting,  ///< until it is tried again, or given up again
      buried    ///< given up, which is not safe yet
    };
    std::string topic;
    std::string params;
    std::uint32_t deliveries = 0;
    State state = State::ready;
    ConsumerReads::Share* share = nullptr;  // whose memory it is in
    Peer* peer = nullptr;                   // of one that is sent
    std::chrono::nanoseconds due{};         // of one that is sent, or rests; of a shared store's, until when it is ours
    std::string error = {};                 // JSON, of one that is given up
    std::string account = {};               // likewise: whose client had it last
  };
  using Pending = std::map<std::uint64_t, PendingEvent>;

  void expired() override;
  [[nodiscard]] std::uint64_t scanned() const noexcept;
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] static bool is_free(const Joined& member);
  [[nodiscard]] static std::size_t bytes_of(const PendingEvent& event) noexcept;
  void take(std::string topic, std::string params, std::uint64_t seq, const std::string& account);
  [[nodiscard]] bool is_shared() const noexcept;
  void take_given(const durable::Event& event, const std::string& account);
  void give_back(std::uint64_t seq, std::uint32_t deliveries, std::chrono::nanoseconds pause);
  void fetched(const durable::Outcome<durable::Fetched>& outcome, const std::string& account);
  [[nodiscard]] Joined* free_member();
  [[nodiscard]] const Joined* reader() const;
  void wait_for_members();
  void remember_late(const Peer& peer, std::uint64_t seq);
  [[nodiscard]] Joined* member_of(const Peer& peer) noexcept;
  void send(Pending::iterator event, Joined& member);
  void leave_member(PendingEvent& event) noexcept;
  void remove_member(Joined& member) noexcept;
  void go_on();
  void acknowledge(Pending::iterator event);
  void fail(Pending::iterator event, std::string_view error_json, std::chrono::nanoseconds pause);
  void bury(Pending::iterator event, std::string error);
  void buried(std::uint64_t seq, bool safe);
  void remove(Pending::iterator event);
  void forget_acknowledged() noexcept;
  void wait_until(Pending::iterator event, std::chrono::nanoseconds due);
  void wait_no_more(Pending::iterator event) noexcept;
  void wake_at(std::chrono::nanoseconds time);

  DurableTopics* topics_;
  BrokerContext* context_;
  const std::string principal_;
  durable::ConsumerSettings settings_;
  std::map<std::uint64_t, durable::Tried> tried_;  // by an earlier process, and not read yet by this one
  std::uint64_t scanned_;                          // all events up to it have been read, unless it follows
  bool follows_ = false;                           // it has read all that there is, and is offered what comes
  std::uint64_t kept_floor_;                       // the store has been told of
  Pending pending_;
  std::size_t pending_bytes_ = 0;
  std::set<std::uint64_t> acknowledged_;  // behind the floor, each a row of the store
  std::set<std::uint64_t> ready_;
  std::set<std::pair<std::chrono::nanoseconds, std::uint64_t>> due_;  // of those that are sent, or rest
  std::vector<Joined> members_;
  std::size_t next_ = 0;  // whose turn it is
  bool fetching_ = false;
  bool unloaded_ = false;
  std::chrono::nanoseconds wakes_at_ = kNoDeadline;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // as long as the store may answer
};

}  // namespace wirecall::broker
