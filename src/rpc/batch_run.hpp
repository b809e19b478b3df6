// BatchRun: one batch while its elements are served; OpenBatch: one that waits between two turns for its next share.
// Both belong to the dispatcher that serves the batch. RunningBatch tells which batch each dispatcher of a thread is
// serving, so that an element that ends early, or a handler that loses the loop, finds it. One thread (the loop's).
// Implements docs/wire.md "Batches".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "rpc/pending.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// What the elements are read from, and what they are answered into.
struct BatchRun {
  BatchRun() = default;
  explicit BatchRun(std::string_view batch) noexcept : text(batch), rest(batch.data() + 1) {}

  BatchScope scope;
  std::string_view text;                                      ///< of the batch
  const char* rest = nullptr;                                 ///< behind the last element that has been served
  std::string_view msgpack;                                   ///< of one in MessagePack, whose params are there
  std::size_t msgpack_rest = 0;                               ///< where in that the next element begins
  std::string_view msgpack_element;                           ///< the one that is served
  std::span<const message::Unrepresentable> unrepresentable;  ///< of one that was none of JSON
  std::size_t offset = 0;                                     ///< of `text` in what these offsets count from
  std::shared_ptr<Rendering> rendering;  ///< of the answer to the element that is served; null for none
  std::optional<std::chrono::nanoseconds> received_at{};  ///< the last byte, of one that has been interrupted
  /// What is served next: `same_element` once more the one that has been served in part, `none` where others serve the
  /// rest.
  enum class Next : std::uint8_t { element, same_element, none };
  Next next = Next::element;
  /// How the elements are read, and what becomes of them: `refused` ones are answered, and not run.
  enum class Way : std::uint8_t { plain, transcoded, msgpack, refused };
  Way way = Way::plain;
  bool begun = false;   ///< the element that is served next has begun, though its way is `refused` by now
  bool single = false;  ///< one message, which stands in an array of its own
};

/// Lists a batch as the one that a dispatcher serves, as long as this object lives. The batches of handlers that have
/// lost the loop stand in the same list, and leave it in any order.
class RunningBatch {
 public:
  RunningBatch(const Dispatcher& dispatcher, BatchRun& run, LoopContext& loop_context) noexcept
      : dispatcher_(&dispatcher),
        run_(&run),
        loop_context_(&loop_context),
        outer_(std::exchange(loop_context.running_batch, this)) {}
  RunningBatch(RunningBatch&&) = delete;
  ~RunningBatch() {
    for (RunningBatch** at = &loop_context_->running_batch; *at != nullptr; at = &(*at)->outer_) {
      if (*at != this) continue;
      *at = outer_;
      return;
    }
  }

  /// The innermost batch that `dispatcher` serves and has not left; null for none.
  [[nodiscard]] static BatchRun* of(const Dispatcher& dispatcher, const LoopContext& loop_context) noexcept {
    for (const RunningBatch* one = loop_context.running_batch; one != nullptr; one = one->outer_) {
      if (one->dispatcher_ == &dispatcher && one->run_->next != BatchRun::Next::none) return one->run_;
    }
    return nullptr;
  }

 private:
  const Dispatcher* dispatcher_;
  BatchRun* run_;
  LoopContext* loop_context_;
  RunningBatch* outer_;
};

/// The rest of a batch with the memory that serving it needs.
struct OpenBatch {
  OpenBatch(const BatchRun& of, MessageForm form);
  OpenBatch(OpenBatch&&) = delete;

  Buffer text;
  Buffer msgpack;
  std::vector<message::Unrepresentable> unrepresentable;
  MessageForm form;  ///< of its replies
  BatchRun run;
  BatchElements elements;

 private:
  std::string_view copy_rest(const BatchRun& of);
};

}  // namespace wirecall::rpc
