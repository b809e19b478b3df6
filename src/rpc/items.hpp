// The two kinds of Items: those that are gathered into one result, and those that are sent to the caller as they come,
// each as a notification of its own: rpc.item while the caller gives credit, or LSP's $/progress. Items that are sent
// wait while the caller has taken too little of what it has been sent: then their stream rests.
// One thread. Implements docs/wire.md "Result streams".
#pragma once

#include <list>

#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/detail/items.hpp"

namespace wirecall::rpc {

struct PendingCalls;

/// Encoded one by one into one array that stays within max_message_size, while all that is gathered for one peer stays
/// within hard_output.
class GatheredItems final : public detail::Items {
 public:
  /// In that codec. `stats` outlives it, as the task does.
  GatheredItems(const Codec& codec, const Limits& limits, Stats& stats, std::shared_ptr<PendingCalls> calls);
  ~GatheredItems() override;

  void write_result(Writer& writer) override;

 private:
  Writer& begin() override { return *writer_; }
  void end() override;
  void discard() noexcept override {}  // the array will not be used
  [[nodiscard]] bool writable() noexcept override { return true; }

  Buffer text_;
  std::unique_ptr<Writer> writer_;
  Stats* stats_;
  std::size_t bytes_max_;
  std::size_t bytes_of_peer_max_;
  std::shared_ptr<PendingCalls> calls_;  // the peer's
  std::size_t counted_ = 0;              // bytes of ours in PeerLoad::held_bytes
};

class SentItems;
/// Streams that wait until their sink is writable, in the order in which they began to.
using WritableQueue = std::list<SentItems*>;

class SentItems final : public detail::Items {
 public:
  enum class Way : std::uint8_t { credit, progress, event };

  /// `name` is the request's id, or the progress token, as JSON text; of an event, its whole text up to its value, to
  /// which "}}" is the end. `credit` counts for Way::credit. The first three
  /// are used until `call_ended`.
  /// The items are written, and sent, in that form.
  SentItems(MessageSink& sink, LoopContext& loop_context, MessageForm form, WritableQueue& queue, std::size_t bytes_max,
            Way way, std::string_view name, std::uint64_t credit);
  ~SentItems() override { leave_queue(); }

  /// The caller takes `more` items. May end the call, and `this`.
  void grant(std::uint64_t more);
  /// The caller says nothing any more: where it has no credit left, the stream fails; as grant.
  void peer_ended();
  /// The sink may be writable again; as grant.
  void resume();
  /// Nobody waits for items any more: none is sent from now on.
  void call_ended() noexcept;
  /// When the next item has to have come, after at most `gap_max` without one. Time in which the stream waits for its
  /// caller does not count.
  [[nodiscard]] std::chrono::nanoseconds next_due(std::chrono::nanoseconds gap_max) const noexcept;

  void write_result(Writer& writer) override { writer.null(); }

 private:
  Writer& begin() override;
  void end() override;
  void discard() noexcept override { sink_->discard_message(); }
  void append_head();
  [[nodiscard]] Buffer native_head() const;
  [[nodiscard]] bool starved() const noexcept { return no_more_credit_ && !may_send(); }
  [[nodiscard]] bool writable() noexcept override;
  void wait_begins() override;
  void wait_ends() noexcept override { leave_queue(); }
  void leave_queue() noexcept;
  [[nodiscard]] bool may_send() const noexcept { return way_ != Way::credit || credit_ != 0; }

  MessageSink* sink_;
  LoopContext* loop_context_;
  WritableQueue* queue_;
  WritableQueue::iterator position_;  // while queued_
  std::size_t bytes_max_;
  Buffer head_;  // of each item, up to its number or value
  std::uint64_t credit_;
  std::uint64_t sequence_ = 0;
  std::chrono::nanoseconds last_;  // when an item was sent, or the wait for the caller ended
  Buffer* out_ = nullptr;          // between begin and end
  std::size_t start_ = 0;
  Way way_;
  MessageForm form_;
  bool queued_ = false;
  bool ended_ = false;
  bool no_more_credit_ = false;
};

}  // namespace wirecall::rpc
