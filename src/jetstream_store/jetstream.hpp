// JetStream: what a store asks of NATS's JetStream: requests that have an answer or a time, messages that are kept, and
// messages that a consumer is given. It has a connection of its own, so that calls between nodes do not wait behind it.
// Nothing is sent again: what had no answer when the connection was lost has failed. Thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/store.hpp"
#include "nats/nats_bus.hpp"
#include "wirecall/context.hpp"
#include "wirecall/value.hpp"

namespace wirecall::jetstream_store {

/// A message that a consumer has been given, which is to be acknowledged at `reply`.
struct PulledMessage {
  std::string subject;
  std::string reply;
  std::string payload;
};

class JetStream {
 public:
  using Headers = std::vector<net::HeaderBus::Header>;

  /// `inbox` is a subject below which only this has answers come. `scheduler` outlives it.
  JetStream(std::unique_ptr<net::HeaderBus> bus, std::string inbox, Scheduler& scheduler);
  JetStream(JetStream&&) = delete;
  ~JetStream();

  /// `changed` is called whenever it is connected, or is not any more. Once, before anything else.
  void on_connection(std::function<void(bool connected)> changed) { changed_ = std::move(changed); }
  /// `absent` is called when it says that a stream is not there, or that nobody takes what was published. Once, before
  /// anything else.
  void on_absence(std::function<void()> absent) { absent_ = std::move(absent); }
  [[nodiscard]] bool is_connected() const noexcept;
  /// The most bytes of a message.
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept { return bus_->payload_bytes_max(); }
  /// Where it is, for people, and what it says about its last failure.
  [[nodiscard]] std::string url() const { return bus_->url(); }
  [[nodiscard]] std::string failure() const { return bus_->failure(); }
  /// Requests that are not answered yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiters_.size(); }

  /// `then` is called with the answer, never from within: `unknown` where JetStream says that there is no such thing.
  void request(std::string_view subject, std::string_view payload, durable::Then<Value> then,
               const Headers& headers = {});
  /// The same of several at once, a subject and a payload each: `then` is called with all answers, and nothing for one
  /// that says that there is no such thing.
  void request_all(std::vector<std::pair<std::string, std::string>> asked,
                   durable::Then<std::vector<std::optional<Value>>> then);
  /// Calls `each` for all subjects of the stream that the filter stands for, with how many messages each has.
  void list_subjects(const std::string& stream, const std::string& filter,
                     std::function<void(std::string_view subject, std::uint64_t messages)> each,
                     durable::Then<durable::Done> then, std::uint64_t offset = 0);
  /// Whether a pull waits a while for the first message where there is none.
  enum class Wait : bool { no, yes };
  /// At most `count` messages for the consumer. One at a time for each consumer.
  void pull(const std::string& stream, const std::string& consumer, std::size_t count, std::size_t bytes, Wait wait,
            durable::Then<std::vector<PulledMessage>> then);
  /// `handler` is called with each message to that subject.
  void subscribe(std::string subject, cluster::Bus::Handler handler) {
    bus_->subscribe(std::move(subject), std::move(handler));
  }
  /// Nobody waits for it, and it may be lost.
  void send(std::string_view subject, std::string_view payload);

 private:
  class CallTimer final : public Timer {
   public:
    explicit CallTimer(std::function<void()> act) : act_(std::move(act)) {}
    void expired() override { act_(); }

   private:
    std::function<void()> act_;
  };
  struct Waiter {
    std::chrono::nanoseconds deadline;
    durable::Then<Value> answered = {};  // of a request
    durable::Then<std::vector<PulledMessage>> pulled = {};
    std::string consumer = {};  // of a pull: before "." and where it is
    std::string stream = {};
    std::size_t count = 0;
    std::size_t bytes = 0;
    Wait wait = Wait::no;
    bool waits = false;  // for the first message
    std::vector<PulledMessage> messages = {};
  };

  void bus_changed();
  void take(const cluster::BusMessage& message);
  void take_pulled(const cluster::BusMessage& message);
  void publish(std::uint64_t number, std::string_view subject, std::string_view payload, const Headers& headers);
  void ask(std::uint64_t number, bool wait);
  void end_pull(std::uint64_t number);
  void forget_pull(std::uint64_t number, const Waiter& waiter) noexcept;
  void fail(std::uint64_t number, durable::Failure failure);
  void tick();
  void wants_flush();
  [[nodiscard]] std::uint64_t add(Waiter waiter);

  std::unique_ptr<net::HeaderBus> bus_;
  const std::string inbox_;
  Scheduler* scheduler_;
  std::function<void(bool)> changed_;
  std::function<void()> absent_;
  bool connected_ = false;
  std::map<std::uint64_t, Waiter> waiters_;
  std::map<std::string, std::uint64_t, std::less<>> pulls_;  // by "STREAM.CONSUMER"
  std::vector<std::uint64_t> unsent_;                        // that fail in the next turn
  std::uint64_t last_ = 0;
  bool ticks_ = false;
  bool flushes_ = false;
  CallTimer tick_timer_{[this] { tick(); }};
  CallTimer flush_timer_;
};

}  // namespace wirecall::jetstream_store
