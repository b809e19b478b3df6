// See batch_run.hpp.
#include "rpc/batch_run.hpp"

#include "message/call_text.hpp"
#include "message/own_error.hpp"
#include "rpc/authentication.hpp"
#include "rpc/call_options.hpp"
#include "rpc/encoded_messages.hpp"
#include "rpc/invocation.hpp"

namespace wirecall::rpc {

// What is left of a batch is answered this way, and not run any more; what has begun may have done its work.
static Error closes_within_batch(bool begun) {
  return message::make(
      {.code = ErrorCode::draining, .reason = "the connection is being closed", .delivered = begun ? "maybe" : "no"});
}

static void keep_open_batch(const ServedPeer& peer, std::shared_ptr<OpenBatch> open) {
  peer.loop.batches.open.insert_or_assign(&peer, std::move(open));
}

// It is kept for a later turn.
static void hold_batch(ServedPeer& peer, BatchRun& run) {
  BatchReply& batch = run.scope.current();
  const std::size_t answers = std::max(batch.bytes, batch.text.capacity());
  const std::size_t listed = run.rendering != nullptr ? run.rendering->text().size() : 0;
  batch.held.set(peer.shared_load(), answers + listed + run.text.size() + run.encoded.text.size());
  peer.sink.held_changed();
}

// What has been answered goes with the rest; who is late answers into the same.
static void open_batch(ServedPeer& peer, BatchRun& run) {
  auto open = std::make_shared<OpenBatch>(run, peer.form);
  open->run.scope.local = std::move(run.scope.local);
  open->run.scope.shared = std::move(run.scope.shared);
  open->run.rendering = std::move(run.rendering);
  if (peer.loop.scheduler != nullptr) open->run.received_at = received_at(peer);
  hold_batch(peer, open->run);
  keep_open_batch(peer, std::move(open));
  peer.sink.interrupt();
}

static void interrupt_batch(ServedPeer& peer, BatchRun& run) {
  if (run.next != BatchRun::Next::none) open_batch(peer, run);
}

// All its calls have been made.
static void close_batch(ServedPeer& peer, BatchRun& run) {
  if (run.single) return;
  BatchReply& batch = run.scope.current();
  WIRECALL_ASSERT(!batch.dispatched && batch.unanswered <= batch.gaps.size());
  batch.dispatched = true;
  if (batch.unanswered != 0) {
    batch.held.set(peer.shared_load(), std::max(batch.bytes, batch.text.capacity()));
    return peer.sink.held_changed();
  }
  send_batch(peer, batch);
  peer.loop.batches.scratch = std::move(batch.text);
}

static void serve_element_as(BatchRun& run, const Received& element, CallState& state) {
  if (run.way == BatchRun::Way::encoded) {
    const bool calls = element.kind == MessageKind::request || element.kind == MessageKind::notification;
    // Somebody may have begun to look on since the batch has come.
    if (calls && !takes_encoded(state.peer, element))
      return serve_as_json(element, state, {run.encoded_element, run.encoded.encoding});
    return serve_encoded(element, state, run.encoded, run.encoded_element, false);
  }
  if (run.way == BatchRun::Way::transcoded) {
    const auto offset = static_cast<std::size_t>(element.text.data() - run.text.data());
    return serve_transcoded(element, state, run.offset + offset, run.unrepresentable);
  }
  if (element.kind != MessageKind::notification) state.reply.error(closes_within_batch(run.begun), element.id());
  run.begun = false;
}

// False when the batch goes no further: it is others' turn first, or others serve the rest. `scope` is null where the
// batch is one message.
[[gnu::always_inline]] static inline bool serve_next(ServedPeer& peer, BatchRun& run, BatchScope* scope,
                                                     const Received& element, Share* share) {
  if (share != nullptr && share->steps_left <= 0 && !peer.sink.next_share()) [[unlikely]]
    return false;
  std::size_t bytes = element.text.size();
  if (!run.encoded.empty()) [[unlikely]] {
    const message::NativeTranscoder& transcoder = peer.loop.codecs.native(run.encoded.encoding);
    run.encoded_element = transcoder.element_at(run.encoded.text, run.encoded_rest);
    bytes = run.encoded_element.size();
    run.encoded_rest += bytes;
  }
  // One that is served once more has been paid for: a large one would use up each share before any of its answer.
  const std::size_t paid = run.rendering != nullptr ? bytes : 0;
  if (share != nullptr) share->steps_left -= static_cast<std::int32_t>(1 + (bytes - paid) / Share::kBytesOfStep);
  run.rest = element.text.data() + element.text.size();
  if (element.kind == MessageKind::response) {
    peer.sink.batched_response(element, run.encoded, run.encoded_element);
    return true;
  }
  CallState state{peer, scope};
  if (peer.loop.services.authority == nullptr || authenticate_element(element, state)) {
    if (run.way == BatchRun::Way::plain) [[likely]] {
      serve_message(peer, element, state);
    } else {
      serve_element_as(run, element, state);
    }
  }
  if (run.next == BatchRun::Next::element) [[likely]] {
    if (run.rendering != nullptr) [[unlikely]]
      run.rendering.reset();  // of one whose time was up
    return true;
  }
  if (run.next == BatchRun::Next::same_element) {
    run.rest = element.text.data();
    if (!run.encoded.empty()) run.encoded_rest -= bytes;
  }
  return false;
}

OpenBatch::OpenBatch(const BatchRun& of, MessageForm form)
    : encoded(of.encoded.text),
      unrepresentable(of.unrepresentable.begin(), of.unrepresentable.end()),
      form(form),
      elements(copy_rest(of)) {
  run.encoded = {encoded.view(), of.encoded.encoding};
  run.encoded_rest = of.encoded_rest;
  run.unrepresentable = unrepresentable;
  run.offset = of.offset + static_cast<std::size_t>(of.rest - of.text.data()) - 1;
  run.way = of.way;
  run.single = of.single;
}

std::string_view OpenBatch::copy_rest(const BatchRun& of) {
  text.push_back('[');
  text.append({of.rest, static_cast<std::size_t>(of.text.data() + of.text.size() - of.rest)});
  run.text = text.padded();
  run.rest = run.text.data() + 1;
  return run.text;
}

void serve_batch(ServedPeer& peer, BatchRun& run, std::size_t count, std::span<const Received> elements) {
  // The scratch memory goes with the batch, in case a handler brings in another one.
  run.scope.local.text = std::move(peer.loop.batches.scratch);
  run.scope.local.begin(peer.form);
  const RunningBatch running{peer, run};
  Share* const share = peer.sink.share();
  for (const Received& element : elements.first(std::min(count, elements.size()))) {
    if (!serve_next(peer, run, &run.scope, element, share)) [[unlikely]]
      return interrupt_batch(peer, run);
  }
  if (count > elements.size()) {
    // What follows `rest` begins with a comma, or with the first element: either way its first byte is not skipped.
    BatchElements walk{{run.rest - 1, run.text.data() + run.text.size()}};
    for (Received element; walk.next(element);) {
      if (!serve_next(peer, run, &run.scope, element, share)) [[unlikely]]
        return interrupt_batch(peer, run);
    }
  }
  close_batch(peer, run);
}

// Of a message only what is asked for when it is served once more, which its params are not.
void open_single(ServedPeer& peer, const Received& message, std::string_view name,
                 std::shared_ptr<Rendering> rendering) {
  std::string text = "[";
  message::begin_call(text, to_json(name));
  if (message.has(Member::timeout_ms)) text.append(R"(,"timeout_ms":)").append(message[Member::timeout_ms]);
  text.append(R"(,"id":)").append(message.id()).append("}]");
  BatchRun run{text};
  run.single = true;
  run.rendering = std::move(rendering);
  open_batch(peer, run);
}

bool leave_batch(ServedPeer& peer) {
  BatchRun* const running = running_batch(peer);
  if (running == nullptr) return false;
  BatchRun& run = *running;
  auto open = std::make_shared<OpenBatch>(run, peer.form);
  if (!run.scope.shared) {
    auto shared = std::make_shared<BatchReply>();
    *shared = std::move(run.scope.local);
    run.scope.shared = std::move(shared);
  }
  open->run.scope.shared = run.scope.shared;
  open->run.received_at = received_at(peer);
  keep_open_batch(peer, std::move(open));
  run.next = BatchRun::Next::none;
  return true;
}

void resume_batch(ServedPeer& peer) {
  // Its own, since a handler that loses the loop may still read from it.
  auto node = peer.loop.batches.open.extract(&peer);
  if (node.empty()) return;
  std::shared_ptr<OpenBatch> open = std::move(node.mapped());
  BatchRun& run = open->run;
  peer.form = open->form;
  const RunningBatch running{peer, run};
  Share* const share = peer.sink.share();
  Received element;
  BatchElements walk = open->elements;
  while (walk.next(element)) {
    if (!serve_next(peer, run, run.single ? nullptr : &run.scope, element, share)) {
      if (run.next == BatchRun::Next::none) return;
      run.next = BatchRun::Next::element;
      hold_batch(peer, run);
      keep_open_batch(peer, std::move(open));
      return peer.sink.interrupt();
    }
    open->elements = walk;
  }
  close_batch(peer, run);
}

void refuse_open_batch(ServedPeer& peer) noexcept {
  const auto found = peer.loop.batches.open.find(&peer);
  if (found == peer.loop.batches.open.end()) return;
  BatchRun& run = found->second->run;
  run.way = BatchRun::Way::refused;
  run.begun = run.rendering != nullptr;
  run.rendering.reset();
}

}  // namespace wirecall::rpc
