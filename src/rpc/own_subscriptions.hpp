// OwnSubscriptions: the subscriptions of one connection to streams of methods of this process (Registry::subscription).
// Each is an EventSink, which its task owns; here they are found by their ids, which nobody can guess. Owned by the
// connection's dispatcher and by the sinks; those that outlive it send nothing.
// One thread. Implements docs/wire.md "Subscriptions to a method".
#pragma once

#include <map>

#include "rpc/items.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "rpc/peer_calls.hpp"
#include "wirecall/detail/event_sink.hpp"

namespace wirecall::rpc {

class OwnSubscriptions : public std::enable_shared_from_this<OwnSubscriptions> {
 public:
  /// All referred to are used until `end_all`.
  OwnSubscriptions(MessageSink& message_sink, LoopContext& loop_context, const Limits& limits,
                   WritableQueue& queue) noexcept
      : message_sink_(&message_sink), loop_context_(&loop_context), limits_(&limits), queue_(&queue) {}
  OwnSubscriptions(OwnSubscriptions&&) = delete;

  /// A new one, by the call of a method that was declared so, which `context` is of. Throws Error -32005.
  [[nodiscard]] std::shared_ptr<detail::EventSink> begin(const Method& method, Context context,
                                                         std::shared_ptr<CallerLink> link, MessageForm form);
  /// Ends the one of that id, if it can be ended by the method of that name; false when there is none.
  bool end(std::string_view id, std::string_view unsubscribe) noexcept;
  /// Nobody listens any more.
  void end_all() noexcept;
  [[nodiscard]] bool empty() const noexcept { return by_id_.empty(); }

 private:
  class Sink;
  using ById = std::map<std::string_view, Sink*>;
  void end(ById::iterator at) noexcept;

  MessageSink* message_sink_;
  LoopContext* loop_context_;
  const Limits* limits_;
  WritableQueue* queue_;
  ById by_id_;
};

}  // namespace wirecall::rpc
