// The part of Dispatcher that serves batches: an element at a time, within the connection's share, and over several
// turns where one share is not enough.
#include "rpc/batch_run.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "message/error_text.hpp"
#include "rpc/rendering.hpp"
#include "rpc/reserved.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {
namespace {

// Whether somebody may wait for the answer to this element of a batch by its id.
bool has_waiting_id(const Received& element) noexcept {
  return element.kind == MessageKind::request || (element.kind == MessageKind::invalid && element.has(Member::id));
}

}  // namespace

OpenBatch::OpenBatch(const BatchRun& of, MessageForm form)
    : msgpack(of.msgpack),
      unrepresentable(of.unrepresentable.begin(), of.unrepresentable.end()),
      form(form),
      elements(copy_rest(of)) {
  run.msgpack = msgpack.view();
  run.msgpack_rest = of.msgpack_rest;
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

void Dispatcher::handle_batch(BatchRun& run, std::size_t count, std::span<const Received> elements) {
  // The scratch memory goes with the batch, in case a handler brings in another one.
  run.scope.local.text = std::move(loop_context_->batch_text);
  run.scope.local.begin(form_);
  const RunningBatch running{*this, run, *loop_context_};
  Share* const share = sink_->share();
  for (const Received& element : elements.first(std::min(count, elements.size()))) {
    if (!serve_next(run, &run.scope, element, share)) [[unlikely]]
      return interrupt_batch(run);
  }
  if (count > elements.size()) {
    // What follows `rest` begins with a comma, or with the first element: either way its first byte is not skipped.
    BatchElements walk{{run.rest - 1, run.text.data() + run.text.size()}};
    for (Received element; walk.next(element);) {
      if (!serve_next(run, &run.scope, element, share)) [[unlikely]]
        return interrupt_batch(run);
    }
  }
  close_batch(run);
}

// False when the batch goes no further: it is others' turn first, or others serve the rest. `scope` is null where the
// batch is one message.
[[gnu::always_inline]] inline bool Dispatcher::serve_next(BatchRun& run, BatchScope* scope, const Received& element,
                                                          Share* share) {
  if (share != nullptr && share->steps_left <= 0 && !sink_->next_share()) [[unlikely]]
    return false;
  std::size_t bytes = element.text.size();
  if (!run.msgpack.empty()) [[unlikely]] {
    run.msgpack_element = message::Transcoder::element_at(run.msgpack, run.msgpack_rest);
    bytes = run.msgpack_element.size();
    run.msgpack_rest += bytes;
  }
  // One that is served once more has been paid for: a large one would use up each share before any of its answer.
  const std::size_t paid = run.rendering != nullptr ? bytes : 0;
  if (share != nullptr) share->steps_left -= static_cast<std::int32_t>(1 + (bytes - paid) / Share::kBytesOfStep);
  run.rest = element.text.data() + element.text.size();
  if (element.kind == MessageKind::response) {
    sink_->batched_response(element, run.msgpack, run.msgpack_element);
    return true;
  }
  CallState state{*this, scope};
  if (loop_context_->authority == nullptr || admit_element(element, state)) serve_element(run, element, state);
  if (run.next == BatchRun::Next::element) [[likely]] {
    if (run.rendering != nullptr) [[unlikely]]
      run.rendering.reset();  // of one whose time was up
    return true;
  }
  if (run.next == BatchRun::Next::same_element) {
    run.rest = element.text.data();
    if (!run.msgpack.empty()) run.msgpack_rest -= bytes;
  }
  return false;
}

void Dispatcher::interrupt_batch(BatchRun& run) {
  if (run.next != BatchRun::Next::none) open_batch(run);
}

// An element before it, or a reload since the batch was interrupted, may have taken from the peer what it may do.
bool Dispatcher::admit_element(const Received& element, CallState& state) {
  if (principal() != nullptr && is_still_known()) return true;
  if (element.kind == MessageKind::notification) return false;
  const Error error = unauthenticated();
  log_unauthenticated(element);
  loop_context_->stats.count_error(error.code());
  state.reply.error(error, element.id());
  return false;
}

// What has been answered goes with the rest; who is late answers into the same.
void Dispatcher::open_batch(BatchRun& run) {
  auto open = std::make_shared<OpenBatch>(run, form_);
  open->run.scope.local = std::move(run.scope.local);
  open->run.scope.shared = std::move(run.scope.shared);
  open->run.rendering = std::move(run.rendering);
  if (loop_context_->scheduler != nullptr) open->run.received_at = received_at();
  hold_batch(open->run);
  keep_open_batch(std::move(open));
  sink_->interrupt();
}

// Of a message only what is asked for when it is served once more, which its params are not.
void Dispatcher::open_single(const Received& message, std::string_view name, std::shared_ptr<Rendering> rendering) {
  std::string text = R"([{"jsonrpc":"2.0","method":)" + to_json(name);
  if (message.has(Member::timeout_ms)) text.append(R"(,"timeout_ms":)").append(message[Member::timeout_ms]);
  text.append(R"(,"id":)").append(message.id()).append("}]");
  BatchRun run{text};
  run.single = true;
  run.rendering = std::move(rendering);
  open_batch(run);
}

bool Dispatcher::leave_batch() {
  BatchRun* const running = running_batch();
  if (running == nullptr) return false;
  BatchRun& run = *running;
  auto open = std::make_shared<OpenBatch>(run, form_);
  if (!run.scope.shared) {
    auto shared = std::make_shared<BatchReply>();
    *shared = std::move(run.scope.local);
    run.scope.shared = std::move(shared);
  }
  open->run.scope.shared = run.scope.shared;
  open->run.received_at = received_at();
  keep_open_batch(std::move(open));
  run.next = BatchRun::Next::none;
  return true;
}

void Dispatcher::resume_batch() {
  // Its own, since a handler that loses the loop may still read from it.
  std::shared_ptr<OpenBatch> open = take_open_batch();
  if (open == nullptr) return;
  BatchRun& run = open->run;
  form_ = open->form;
  const RunningBatch running{*this, run, *loop_context_};
  Share* const share = sink_->share();
  Received element;
  BatchElements walk = open->elements;
  while (walk.next(element)) {
    if (!serve_next(run, run.single ? nullptr : &run.scope, element, share)) {
      if (run.next == BatchRun::Next::none) return;
      run.next = BatchRun::Next::element;
      hold_batch(run);
      keep_open_batch(std::move(open));
      return sink_->interrupt();
    }
    open->elements = walk;
  }
  close_batch(run);
}

BatchRun* Dispatcher::running_batch() const noexcept { return RunningBatch::of(*this, *loop_context_); }

// Whether the message has been served in part.
bool Dispatcher::is_continued() const noexcept {
  const BatchRun* const running = running_batch();
  return running != nullptr && running->rendering != nullptr;
}

std::shared_ptr<OpenBatch> Dispatcher::take_open_batch() noexcept {
  const auto node = loop_context_->open_batches.extract(this);
  return node.empty() ? nullptr : std::static_pointer_cast<OpenBatch>(node.mapped());
}

void Dispatcher::keep_open_batch(std::shared_ptr<OpenBatch> open) {
  loop_context_->open_batches.insert_or_assign(this, std::move(open));
}

void Dispatcher::refuse_open_batch() noexcept {
  const auto found = loop_context_->open_batches.find(this);
  if (found == loop_context_->open_batches.end()) return;
  BatchRun& run = static_cast<OpenBatch*>(found->second.get())->run;
  run.way = BatchRun::Way::refused;
  run.begun = run.rendering != nullptr;
  run.rendering.reset();
}

// It is kept for a later turn.
void Dispatcher::hold_batch(BatchRun& run) {
  BatchReply& batch = run.scope.current();
  const std::size_t answers = std::max(batch.bytes, batch.text.capacity());
  const std::size_t listed = run.rendering != nullptr ? run.rendering->text().size() : 0;
  batch.held.set(pending().load, answers + listed + run.text.size() + run.msgpack.size());
  sink_->held_changed();
}

// All its calls have been made.
void Dispatcher::close_batch(BatchRun& run) {
  if (run.single) return;
  BatchReply& batch = run.scope.current();
  batch.dispatched = true;
  if (batch.unanswered != 0) {
    batch.held.set(pending().load, std::max(batch.bytes, batch.text.capacity()));
    return sink_->held_changed();
  }
  send_batch(*sink_, batch);
  loop_context_->batch_text = std::move(batch.text);
}

// Nothing in the batch is run, and whoever waits for the answer to one of its ids is told by that id: an answer without
// an id ends no wait. The bytes are counted before any is written.
void Dispatcher::refuse_batch(const Received& batch, const Error& error) {
  const std::string head = R"({"jsonrpc":"2.0","error":)" + message::error_text(error) + R"(,"id":)";
  const std::size_t bytes_max = std::min(limits_->soft_output, limits_->max_message_size);
  std::size_t bytes = 1;
  std::size_t looked_at = 0;
  bool any = false;
  BatchElements to_count{batch.text};
  Received element;
  while (bytes <= bytes_max && to_count.next(element)) {
    any = any || element.kind != MessageKind::response;
    if (has_waiting_id(element)) bytes += head.size() + element.id().size() + 2;
    if (++looked_at == kRefusedElementsMax) bytes = bytes_max + 1;
  }
  if (!any) {  // a response is never answered; but what has not been looked at may be waited for
    if (bytes > bytes_max) sink_->close();
    return;
  }
  const bool each = bytes > 1 && bytes <= bytes_max;
  if (bytes > bytes_max) sink_->close();  // what waits by its id is not told otherwise
  Buffer& out = sink_->open_message();
  try {
    const auto append = [&](std::string_view id) {
      loop_context_->stats.count_error(error.code());
      out.append(head);
      out.append(id);
      out.push_back('}');
    };
    if (each) {
      char separator = '[';
      for (BatchElements elements{batch.text}; elements.next(element);) {
        if (!has_waiting_id(element)) continue;
        out.push_back(std::exchange(separator, ','));
        append(element.id());
      }
      out.push_back(']');
    } else {
      append("null");
    }
  } catch (...) {
    sink_->discard_message();
    throw;
  }
  sink_->close_compact_as(form_);
}

}  // namespace wirecall::rpc
