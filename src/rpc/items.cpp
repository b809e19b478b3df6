#include "rpc/items.hpp"

#include "base/decimal.hpp"
#include "message/call_text.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/pending.hpp"

namespace wirecall::detail {

bool ItemsAwaiter::await_ready() const noexcept { return items_->writable(); }

}  // namespace wirecall::detail

namespace wirecall::rpc {

using std::chrono::nanoseconds;

static void require_encoded(const Writer& writer) {
  if (writer.failed()) throw std::runtime_error("an item cannot be encoded: " + writer.failure());
}

// ---- gathered ----

GatheredItems::GatheredItems(const Codec& codec, const Limits& limits, Stats& stats,
                             std::shared_ptr<PendingCalls> calls)
    : writer_(codec.writer()),
      stats_(&stats),
      bytes_max_(limits.max_message_size),
      bytes_of_peer_max_(limits.hard_output),
      calls_(std::move(calls)) {
  writer_->reset(text_);
  writer_->begin_array(Writer::kUnknownSize);
}

GatheredItems::~GatheredItems() {
  if (counted_ != 0) calls_->load->held_bytes -= counted_;
}

void GatheredItems::end() {
  require_encoded(*writer_);
  std::size_t& held = calls_->load->held_bytes;
  const std::size_t before = held;
  held += text_.size() - counted_;
  counted_ = text_.size();
  if (held / kBytesUnweighed != before / kBytesUnweighed && calls_->owner != nullptr)
    calls_->owner->sink.held_changed();
  if (counted_ > bytes_max_) {
    throw message::too_large("the items together are larger than a message may be", "maybe");
  }
  if (held > bytes_of_peer_max_) {
    throw message::limit_exceeded("too many items are being gathered for this connection", "hard_output", "maybe");
  }
  ++stats_->stream_items;
}

void GatheredItems::write_result(Writer& writer) {
  writer_->end_array();
  if (writer_->is_json() && !writer.is_json()) return writer.json(text_.view());
  writer.encoded(text_.view());
}

// ---- sent ----

// A reply may be written in an encoding in which items are not.
static MessageForm natively_if_all(MessageForm form) noexcept {
  return message::codec_of(form.sent).is_native ? form : MessageForm::text(form.sent);
}

SentItems::SentItems(MessageSink& sink, LoopContext& loop_context, MessageForm form, WritableQueue& queue,
                     std::size_t bytes_max, Way way, std::string_view name, std::uint64_t credit)
    : sink_(&sink),
      loop_context_(&loop_context),
      queue_(&queue),
      bytes_max_(bytes_max),
      credit_(credit),
      last_(loop_context.scheduler != nullptr ? loop_context.scheduler->now() : nanoseconds{0}),
      way_(way),
      form_(natively_if_all(form)) {
  const bool credited = way == Way::credit;
  if (way == Way::event) {
    head_.append(name);
    if (form_.natively) head_ = native_head();
    return;
  }
  if (form_.natively) {
    loop_context.codecs.native(form_.sent).begin_item(head_, credited, name);
    return;
  }
  if (credited) {
    message::begin_call(head_, R"("rpc.item")", R"({"id":)");
  } else {
    message::begin_call(head_, R"("$/progress")", R"({"token":)");
  }
  head_.append(name);
  head_.append(credited ? R"(,"seq":)" : R"(,"value":)");
}

// What the head is in the caller's encoding, before the value.
Buffer SentItems::native_head() const {
  Buffer json{head_.view()};
  json.append("null}}");
  Buffer head;
  Buffer null;
  message::NativeTranscoder& transcoder = loop_context_->codecs.native(form_.sent);
  static_cast<void>(transcoder.from_json(json.padded(), Limits{}, head));
  transcoder.append_value(null, Buffer{"null"}.padded());
  head.truncate(head.size() - null.size());
  return head;
}

Writer& SentItems::begin() {
  if (ended_) throw Cancelled{};
  if (starved()) {
    throw message::make(ErrorCode::cancelled, "the caller has ended the connection, and gives no more credit", "maybe");
  }
  out_ = &sink_->open_message();
  start_ = out_->size();
  append_head();
  Writer& writer = loop_context_->codecs.writer_of(form_);
  writer.reset(*out_);
  return writer;
}

// Half a message must not stay where others follow, whatever fails.
void SentItems::append_head() {
  try {
    out_->append(head_.view());
    if (way_ != Way::credit) return;
    if (form_.natively) return loop_context_->codecs.native(form_.sent).append_item_number(*out_, sequence_);
    append_number(*out_, sequence_);
    out_->append(R"(,"value":)");
  } catch (...) {
    discard();
    throw;
  }
}

void SentItems::end() {
  try {
    if (!form_.natively) out_->append("}}");
  } catch (...) {
    discard();
    throw;
  }
  const Writer& writer = loop_context_->codecs.writer_of(form_);
  const bool too_large = out_->size() - start_ > bytes_max_;
  if (too_large || writer.failed()) {
    discard();
    require_encoded(writer);
    throw message::too_large("an item is larger than a message may be", "maybe");
  }
  sink_->close_compact_as(form_);  // a writer has written the item
  ++loop_context_->stats.stream_items;
  ++sequence_;
  if (way_ == Way::credit) --credit_;
  if (loop_context_->scheduler != nullptr) last_ = loop_context_->scheduler->now();
}

bool SentItems::writable() noexcept {
  if (ended_ || starved()) return true;  // to hear of it
  return may_send() && sink_->writable();
}

void SentItems::wait_begins() {
  if (!may_send()) return;
  position_ = queue_->insert(queue_->end(), this);
  queued_ = true;
}

void SentItems::leave_queue() noexcept {
  if (std::exchange(queued_, false)) queue_->erase(position_);
}

void SentItems::grant(std::uint64_t more) {
  const bool had_none = credit_ == 0;
  credit_ = more > std::numeric_limits<std::uint64_t>::max() - credit_ ? std::numeric_limits<std::uint64_t>::max()
                                                                       : credit_ + more;
  if (had_none) resume();
}

void SentItems::peer_ended() {
  no_more_credit_ = true;
  if (starved()) resume();
}

void SentItems::resume() {
  if (!waiting()) return;
  leave_queue();
  if (!writable()) return wait_begins();
  if (loop_context_->scheduler != nullptr) last_ = loop_context_->scheduler->now();
  wake();
}

void SentItems::call_ended() noexcept {
  leave_queue();
  ended_ = true;
}

nanoseconds SentItems::next_due(nanoseconds gap_max) const noexcept {
  return (waiting() ? loop_context_->scheduler->now() : last_) + gap_max;
}

}  // namespace wirecall::rpc
