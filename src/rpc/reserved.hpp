// The methods under names of ours, `rpc.` and `$/`: those that concern one connection (cancelling, credit, ping, hello)
// and, where there is a broker, those that it has. They are no handlers: they take effect at once, before the next
// message is looked at, no middleware sees them, and nothing is looked for among them until a name has not been found
// in the registry, which can hold none of theirs.
// Implements docs/wire.md "Built-in methods".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "rpc/pending.hpp"
#include "rpc/rendering.hpp"
#include "rpc/reply.hpp"

namespace wirecall::rpc {

/// One request or notification of ours.
struct ReservedCall {
  const Received& message;
  std::string_view name;  ///< unescaped
  Reply& reply;
  LoopContext& loop_context;
  const Limits& limits;
  MessageSink& sink;
  const Registry& registry;
  PendingCalls* pending;                  ///< of the connection; null as long as none has waited
  PeerLoad* load;                         ///< of the connection; null as long as it has none
  BrokerPeer* broker;                     ///< of the connection; null where there is no broker
  bool& greeted;                          ///< becomes true with rpc.hello
  Identity* identity;                     ///< of the peer; null where it need not have one
  std::shared_ptr<Rendering>& rendering;  ///< of the answer, when this call is served once more
  bool late = false;                      ///< the time of the call is up

  /// Of the params, in their encoding.
  [[nodiscard]] Reader& reader() const { return *loop_context.codecs.readers_of(message.encoding).reader; }
  [[nodiscard]] Asker asker() const {
    return identity != nullptr ? Asker{.authority = identity->authority, .principal = identity->principal} : Asker{};
  }
};

struct ReservedMethod {
  /// `source`: a peer in whose name nobody else can have sent; a POST by HTTP is of such a one.
  enum class Needs : std::uint8_t { nothing, source, connection };

  std::string_view name;
  /// Returns the result as JSON text, or throws the Error that the call is refused with. Null: there is no such method
  /// without a broker.
  std::string (*serve)(const ReservedCall&);
  Needs needs = Needs::nothing;
  /// In place of `serve`, for a result that lists whatever there is: it is written over several turns.
  std::shared_ptr<Rendering> (*render)(const ReservedCall&) = nullptr;
};

enum class Served : std::uint8_t {
  unknown,   ///< the name is none of these
  done,      ///< it has been answered
  continues  ///< the share is used up: it is to be served once more in a later turn
};

/// `methods` as find_by_name takes them.
template <std::size_t kCount>
[[nodiscard]] constexpr std::array<ReservedMethod, kCount> sorted_by_name(std::array<ReservedMethod, kCount> methods) {
  std::ranges::sort(methods, {}, &ReservedMethod::name);
  return methods;
}

/// Null: none of `sorted` has this name.
[[nodiscard]] constexpr const ReservedMethod* find_by_name(std::span<const ReservedMethod> sorted,
                                                           std::string_view name) noexcept {
  const auto found = std::ranges::lower_bound(sorted, name, {}, &ReservedMethod::name);
  return found != sorted.end() && found->name == name ? &*found : nullptr;
}

/// Those that need no broker, or are refused without one.
[[nodiscard]] std::span<const ReservedMethod> reserved_methods() noexcept;

/// Of a call that has begun, and may have done what it was to do.
[[nodiscard]] Error late_answer();

/// rpc.item: an item of the stream towards the handler of a request, which this process serves. Returns the result.
[[nodiscard]] std::string receive_input_item(const ReservedCall& call);

/// Serves `call` and answers it, if its name is one of these.
[[nodiscard]] Served serve_reserved(const ReservedCall& call);

}  // namespace wirecall::rpc
