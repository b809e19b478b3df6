// TapFeed: rpc.tap: shows admins what passes through a broker, each what passes under the names that it has asked for.
// Nothing here fails or holds up what is looked at: who looks on loses what it has no room for, and without memory
// nobody is shown anything. Asked only where it is not empty. One thread.
#pragma once

#include <unordered_map>

#include "broker/context.hpp"
#include "broker/event_delivery.hpp"
#include "broker/method_table.hpp"
#include "broker/relayed_calls.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// What a provider is asked for.
struct TappedRequest {
  const Peer& caller;
  std::string_view method;
  EncodedText params;
};

class TapFeed {
 public:
  /// Values are shown up to so many bytes.
  static constexpr std::size_t kValueShownMax = 1024;

  /// All referred to outlive it. `is_tapped` is told whether anybody looks on.
  TapFeed(BrokerContext& context, bool& is_tapped) noexcept : context_(&context), is_tapped_(&is_tapped) {}

  [[nodiscard]] bool empty() const noexcept { return taps_.empty(); }
  /// Shows the peer what passes under names that the pattern, a valid one, stands for. Again, it replaces the pattern.
  /// Throws Error -32007.
  void add(Peer& peer, std::string_view pattern);
  /// Whether the peer looked on.
  bool remove(Peer& peer) noexcept;

  /// A call that is relayed, by its number.
  void call(std::uint64_t number, const Provider& provider, const TappedRequest& request) noexcept;
  void call(std::uint64_t number, const Provider& provider, const Peer& caller, const Received& message) noexcept;
  /// The same ends. The first of several ways in which a call ends that come together tells how it did.
  void end(std::uint64_t number, const RelayedCall& call, const Error& error) noexcept;
  void response(std::uint64_t number, const RelayedCall& call, const Received& message) noexcept;
  void notification(const Provider& provider, const Peer& caller, const Received& message) noexcept;
  void event(const Peer* publisher, std::string_view topic, const EncodedText& params, std::size_t delivered) noexcept;
  /// A call to a method of the process's own is shown, with its outcome; others are passed over.
  void own(Call& call, std::string_view name) noexcept;

 private:
  // One who looks on.
  struct Tap {
    Peer* peer;
    std::string pattern;
  };
  // A call that somebody was shown.
  struct TappedCall {
    std::uint64_t id;    // the feed's own
    std::string method;  // and the name of its caller, empty for none
    std::string client;
  };
  struct Record;

  [[nodiscard]] bool any(std::string_view name) const noexcept;
  std::size_t show(const Record& record);
  [[nodiscard]] TappedCall begin(std::string_view method, std::string_view client);
  void end(std::uint64_t number, const RelayedCall& call, std::string_view member, const EncodedText& value) noexcept;
  [[nodiscard]] std::string method_of(const Received& message) const;

  BrokerContext* context_;
  bool* is_tapped_;
  std::vector<Tap> taps_;
  std::unordered_map<std::uint64_t, TappedCall> calls_;  // that have not ended, by the broker's number
  std::uint64_t last_id_ = 0;
};

}  // namespace wirecall::broker
