// BatchRun: one batch while its elements are served; OpenBatch: one that waits between two turns for its next share.
// Both belong to the peer that is served. RunningBatch tells which batch each peer of a thread is being served, so that
// an element that ends early, or a handler that loses the loop, finds it. The functions serve a batch an element at a
// time, within the connection's share, and over several turns where one share is not enough. One thread (the loop's).
// Implements docs/wire.md "Batches".
#pragma once

#include "base/assert.hpp"
#include "message/transcoder.hpp"
#include "rpc/pending.hpp"
#include "rpc/rendering.hpp"
#include "rpc/served_peer.hpp"
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
  EncodedText encoded;                                        ///< as it came, its params in there; JSON has none
  std::size_t encoded_rest = 0;                               ///< where in that the next element begins
  std::string_view encoded_element;                           ///< the one that is served
  std::span<const message::Unrepresentable> unrepresentable;  ///< of one that was none of JSON
  std::size_t offset = 0;                                     ///< of `text` in what these offsets count from
  std::shared_ptr<Rendering> rendering;  ///< of the answer to the element that is served; null for none
  std::optional<std::chrono::nanoseconds> received_at{};  ///< the last byte, of one that has been interrupted
  /// What is served next: `same_element` once more the one that has been served in part, `none` where others serve the
  /// rest.
  enum class Next : std::uint8_t { element, same_element, none };
  Next next = Next::element;
  /// How the elements are read, and what becomes of them: `refused` ones are answered, and not run.
  enum class Way : std::uint8_t { plain, transcoded, encoded, refused };
  Way way = Way::plain;
  bool begun = false;   ///< the element that is served next has begun, though its way is `refused` by now
  bool single = false;  ///< one message, which stands in an array of its own
};

/// Lists a batch as the one that a peer is served, as long as this object lives. The batches of handlers that have lost
/// the loop stand in the same list, and leave it in any order.
class RunningBatch {
 public:
  RunningBatch(const ServedPeer& peer, BatchRun& run) noexcept
      : peer_(&peer), run_(&run), batches_(peer.loop.batches), outer_(std::exchange(batches_.running, this)) {}
  RunningBatch(RunningBatch&&) = delete;
  ~RunningBatch() {
    RunningBatch** at = &batches_.running;
    while (*at != this) {
      WIRECALL_ASSERT(*at != nullptr);
      at = &(*at)->outer_;
    }
    *at = outer_;
  }

  /// The innermost batch that the peer is served and that has not been left; null for none.
  [[nodiscard]] static BatchRun* of(const ServedPeer& peer) noexcept {
    for (const RunningBatch* one = peer.loop.batches.running; one != nullptr; one = one->outer_) {
      if (one->peer_ == &peer && one->run_->next != BatchRun::Next::none) return one->run_;
    }
    return nullptr;
  }

 private:
  const ServedPeer* peer_;
  BatchRun* run_;
  LoopBatches& batches_;
  RunningBatch* outer_;
};

/// The rest of a batch with the memory that serving it needs.
struct OpenBatch {
  OpenBatch(const BatchRun& of, MessageForm form);
  OpenBatch(OpenBatch&&) = delete;

  Buffer text;
  Buffer encoded;
  std::vector<message::Unrepresentable> unrepresentable;
  MessageForm form;  ///< of its replies
  BatchRun run;
  BatchElements elements;

 private:
  std::string_view copy_rest(const BatchRun& of);
};

/// The innermost batch that the peer is served and that has not been left; null for none.
[[nodiscard]] inline BatchRun* running_batch(const ServedPeer& peer) noexcept {
  return peer.loop.batches.running == nullptr ? nullptr : RunningBatch::of(peer);
}
/// Whether the message that is served has been served in part.
[[nodiscard]] inline bool is_continued(const ServedPeer& peer) noexcept {
  const BatchRun* const running = running_batch(peer);
  return running != nullptr && running->rendering != nullptr;
}

/// `elements` are those that read_message has kept, of `count`.
void serve_batch(ServedPeer& peer, BatchRun& run, std::size_t count, std::span<const Received> elements);
/// What is left of it after an interruption, or as much as the connection's share allows.
void resume_batch(ServedPeer& peer);
/// A single message goes on as the open batch, since its answer takes longer than this turn.
void open_single(ServedPeer& peer, const Received& message, std::string_view name,
                 std::shared_ptr<Rendering> rendering);
/// A handler that a batch has called has lost the loop: the rest of the batch becomes the open batch, and is left alone
/// when that handler returns. False when no batch is being served. Throws std::bad_alloc.
bool leave_batch(ServedPeer& peer);
/// What is left of the open batch is answered -32009, and not run.
void refuse_open_batch(ServedPeer& peer) noexcept;

}  // namespace wirecall::rpc
