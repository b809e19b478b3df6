// PeerCalls: the calls that handlers of one connection make of its peer, by their ids, which are strings so that they
// are no client's. CallerLink: the way from one call's handler to its caller, which knows whether the call has been
// answered. Both are owned by the connection's dispatcher and by the contexts of its calls; those that outlive it find
// that the peer has gone. One thread. Implements docs/wire.md "Calling the caller back".
#pragma once

#include <atomic>
#include <map>

#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/error.hpp"

namespace wirecall::rpc {

class PeerCalls {
 public:
  /// All referred to are used until `gone`.
  PeerCalls(MessageSink& sink, LoopContext& loop_context, const Limits& limits) noexcept
      : sink_(&sink), loop_context_(&loop_context), limits_(&limits) {}

  /// Sends a request for `call`. Throws Error when it cannot.
  void begin(detail::CallerRequest& call, const Context& context, std::string_view method,
             std::string_view params_json);
  void notify(const Context& context, std::string_view method, std::string_view params_json, bool by_handler);
  /// Sends one message, whole or not at all: JSON, or a notification in MessagePack (EventText). Nothing is sent once
  /// the connection is over.
  void send(std::string_view text);
  /// The call is not waited for any more: tells the peer.
  void give_up(detail::CallerRequest& call) noexcept;
  void expired(detail::CallerRequest& call);
  /// False when the response is to none of these calls. Its spans last until this returns.
  bool response(const Received& message);
  /// The peer answers nothing any more: all fail with -32001.
  void peer_ended();
  /// The connection is over: from now on nothing is sent, and nothing referred to is used.
  void gone() noexcept;
  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }
  /// Any thread.
  [[nodiscard]] bool has_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }

 private:
  void require_sendable(const Context& context) const;
  void require_fitting(const Buffer& text, std::string_view reason) const;
  void forget(detail::CallerRequest& call) noexcept;

  MessageSink* sink_;
  LoopContext* loop_context_;
  const Limits* limits_;
  std::map<std::uint64_t, detail::CallerRequest*> calls_;
  std::uint64_t last_id_ = 0;
  bool ended_ = false;  // the peer sends no more
  std::atomic<bool> gone_ = false;
};

/// What a call's handler has to reach its caller. Before the call is answered, what others than the handler say is
/// held.
class CallerLink {
 public:
  /// Holds at most `bytes_max`, and no more than what makes `load` hold `load_bytes_max`.
  CallerLink(std::shared_ptr<PeerCalls> calls, std::shared_ptr<PeerLoad> load, std::size_t bytes_max,
             std::size_t load_bytes_max) noexcept
      : calls_(std::move(calls)), load_(std::move(load)), bytes_max_(bytes_max), load_bytes_max_(load_bytes_max) {}
  CallerLink(CallerLink&&) = delete;

  [[nodiscard]] PeerCalls& calls() const noexcept { return *calls_; }
  [[nodiscard]] const std::shared_ptr<PeerCalls>& shared_calls() const noexcept { return calls_; }
  /// Any thread.
  [[nodiscard]] bool can_notify() const noexcept {
    return state_.load(std::memory_order_relaxed) != State::failed && !calls_->has_gone();
  }
  /// Sends `text` behind the call's answer. Throws Error -32005 when too much waits, -32001 after an error.
  void send_behind_answer(std::string_view text);
  /// To be awaited: the call's answer has been written. Throws Cancelled when that was an error.
  [[nodiscard]] Completion<> answered();
  /// The answer has been written, or will never be: `code` is that of its error, 0 for a result.
  void complete(int code) noexcept;

 private:
  enum class State : std::uint8_t { waiting, answered, failed };

  std::shared_ptr<PeerCalls> calls_;
  std::shared_ptr<PeerLoad> load_;
  std::size_t bytes_max_;
  std::size_t load_bytes_max_;
  std::size_t held_bytes_ = 0;
  std::vector<Buffer> held_;
  std::vector<Completion<>> waiting_;
  std::atomic<State> state_ = State::waiting;
};

}  // namespace wirecall::rpc
