// Bus: what carries bytes between the brokers of a realm: subjects, to which messages are published and subscribed, at
// most once each and in the order of their sender. NATS is one (src/nats); tests have one of their own. Nothing is kept
// for later: what cannot be sent now is refused.
// One thread (the loop's): handlers are called from the loop's turns, never from within `publish` or `subscribe`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace wirecall::cluster {

struct BusMessage {
  std::string_view subject;
  std::string_view reply;        ///< where an answer goes; empty for nowhere
  std::string_view payload;      ///< lasts until the handler returns
  bool no_responders = false;    ///< nobody subscribes to what was published with this subject as its `reply`
  std::string_view status = {};  ///< of what NATS itself says instead of a message, as "404"; empty for messages
};

class Bus {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< it has never been connected
    connected,
    disconnected,  ///< what is published is refused until it is connected again
  };
  using Handler = std::function<void(const BusMessage& message)>;

  Bus() = default;
  Bus(Bus&&) = delete;
  virtual ~Bus() = default;

  [[nodiscard]] virtual State state() const noexcept = 0;
  /// `changed` is called whenever the state has become another one. Once, before anything else.
  virtual void on_state(std::function<void()> changed) = 0;
  /// `handler` is called for each message to that subject, in which `*` stands for one word and `>` for the rest. It
  /// holds on when the bus is connected again. Throws std::bad_alloc.
  virtual void subscribe(std::string subject, Handler handler) = 0;
  /// The same of a subject by which it is told where nobody subscribes, and nothing else: few messages.
  virtual void subscribe_to_absence(std::string subject, Handler handler) = 0;
  /// As `subscribe`; of all that have subscribed in the group of that name, at whichever bus, one gets each message.
  virtual void subscribe_in_group(std::string subject, std::string group, Handler handler) = 0;
  /// Ends all subscriptions to that very subject. What was sent here by then is still handled, unless the bus is lost.
  virtual void unsubscribe(std::string_view subject) noexcept = 0;
  /// Whether there may still be such messages on the way.
  [[nodiscard]] virtual bool is_draining() const noexcept { return false; }
  /// False where the message was not sent, and never will be. `reply` is told where nobody subscribes to `subject`.
  [[nodiscard]] virtual bool publish(std::string_view subject, std::string_view reply,
                                     std::string_view payload) noexcept = 0;
  /// Sends at once what was published, as far as the system takes it; else that is sent in a later turn.
  virtual void flush() noexcept {}
  /// The most bytes of a payload.
  [[nodiscard]] virtual std::size_t payload_bytes_max() const noexcept = 0;
  /// Bytes that were published and wait to be sent.
  [[nodiscard]] virtual std::size_t waiting_bytes() const noexcept = 0;
  /// Where it is, for people: its URL without secrets; and what it says about its last failure, empty for none.
  [[nodiscard]] virtual std::string url() const = 0;
  [[nodiscard]] virtual std::string failure() const = 0;
};

}  // namespace wirecall::cluster
