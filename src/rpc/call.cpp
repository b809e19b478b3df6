// Call and ReplySink: answering now and answering later, by the same rules.
#include "wirecall/call.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "rpc/broker.hpp"
#include "rpc/call_options.hpp"
#include "rpc/items.hpp"
#include "rpc/pending.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/packing.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

using rpc::PendingCall;

// A result that its codec cannot hold is the handler's mistake: the peer learns no more than of an exception.
static Error result_not_encodable(const rpc::LoopContext& loop_context, const Method& method, const Writer& writer) {
  // Of a result that can be encoded, and is refused nevertheless, the failure says what it "is not".
  const char* begin = writer.failure().starts_with("is not ") ? "the result " : "the result cannot be encoded: ";
  (*loop_context.log)(LogLevel::error, begin + writer.failure(), {{"method", method.name()}});
  return Error{ErrorCode::internal_error};
}

// A result that does not fit, or that its codec cannot hold, becomes an error. Out of line: no call that goes well
// should pay for its stack frame.
[[gnu::noinline, gnu::cold]] static int replace_result(rpc::Reply& reply, rpc::LoopContext& loop_context,
                                                       const Method& method, std::string_view id) {
  const Writer& writer = loop_context.codecs.writer_of(reply.form());
  const Error error = writer.failed() ? result_not_encodable(loop_context, method, writer) : rpc::reply_too_large();
  rpc::count_error(loop_context, method, error.code());
  reply.error(error, id);
  return error.code();
}

// end_result without begin_result: a mistake of the handler's, but the peer waits.
static int result_never_begun(rpc::Reply& reply, const rpc::LoopContext& loop_context, const Method& method,
                              std::string_view id) {
  loop_context.write_log(LogLevel::error, "method " + method.name() + ": a result was ended that had not been begun");
  const Error error{ErrorCode::internal_error};
  rpc::count_error(loop_context, method, error.code());
  reply.error(error, id);
  return error.code();
}

// The token by which a caller asks for progress, as sent; empty when it does not.
static std::string progress_token(std::string_view params, Reader& reader) {
  if (params.empty()) return {};
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return {};
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const bool is_token = name == detail::kProgressToken;
    const ValueKind kind = reader.kind();
    std::string_view text;
    if (is_token && (kind == ValueKind::string || kind == ValueKind::number) && reader.read_json(text))
      return std::string{text};
    static_cast<void>(reader.skip());
  }
  return {};
}

// The one end of every result.
[[gnu::always_inline]] static inline int end_result(rpc::Reply& reply, rpc::LoopContext& loop_context,
                                                    const Method& method, std::string_view id) {
  if (loop_context.codecs.writer_of(reply.form()).failed() || !reply.end(id)) [[unlikely]]
    return replace_result(reply, loop_context, method, id);
  return 0;
}

// Ends the result that was begun, or answers for one that never was: the code that the call has come to.
static int finish_reply(rpc::MessageSink& sink, rpc::Reply& reply, rpc::LoopContext& loop_context, const Method& method,
                        std::string_view id, bool notification) {
  int code = static_cast<int>(ErrorCode::internal_error);
  rpc::answer_within_memory(sink, reply, [&] {
    if (reply.begun()) {
      code = end_result(reply, loop_context, method, id);
    } else if (!notification) {
      code = result_never_begun(reply, loop_context, method, id);
    } else {
      code = 0;
    }
  });
  return code;
}

// ---- Call: the answer is given on the caller's stack ----

rpc::LoopContext& rpc::loop_of(const Call& call) noexcept { return call.state_->peer.loop; }

static std::stop_token token_of(std::stop_source& stop) {
  if (!stop.stop_possible()) stop = std::stop_source{};
  return stop.get_token();
}

Context Call::context() {
  std::shared_ptr<rpc::CallerLink>& link = state_->extras().link;
  if (!link && method_->signature().asynchronous) link = state_->peer.caller_link();
  return {method_->name(),
          is_notification() ? std::string{} : std::string{message_->id()},
          stop_token(),
          scheduler(),
          bounds(),
          link,
          state_->peer.sink.peer_credentials(),
          caller()};
}

// A call that has lost the loop is in flight meanwhile; once it is no more, nobody waits for it.
std::stop_token Call::stop_token() {
  const ReplySink* const late = late_sink();
  if (late == nullptr) return token_of(state_->extras().stop);
  PendingCall* const call = late->calls_ != nullptr ? late->calls_->find(late->slot_, late->generation_) : nullptr;
  if (call != nullptr) return token_of(call->extras.stop);
  std::stop_source ended;
  ended.request_stop();
  return ended.get_token();
}

Scheduler* Call::scheduler() const noexcept { return state_->peer.loop.scheduler; }

// What a client says of itself is no proof; a broker takes it out of what it hands on.
std::string Call::caller() const {
  if (const rpc::BrokerPeer* const peer = broker_peer()) return peer->name_given();
  if (!state_->peer.loop.services.told_of_callers || !message_->has(Member::from)) return {};
  return from_json<std::string>((*message_)[Member::from]).value_or(std::string{});
}

void Call::on_reply(ReplyHook hook) { state_->extras().hooks.push_back(std::move(hook)); }

const Limits& Call::limits() const noexcept { return state_->peer.limits; }

const Codec& Call::codec() const noexcept {
  return message_->is_json() ? state_->peer.loop.codecs.codec : message::codec_of(message_->encoding).values();
}

// Where values have their lengths in front, nothing of a list is written before its end, and nobody could count its
// bytes.
const Codec& Call::item_codec() const noexcept {
  return message::codec_of(message_->encoding).is_native ? codec() : state_->peer.loop.codecs.codec;
}

Reader& Call::reader() noexcept { return *param_readers().reader; }

detail::ParamReaders& Call::param_readers() noexcept {
  rpc::LoopContext& loop_context = state_->peer.loop;
  return loop_context.codecs.readers_of(message_->encoding);
}

std::shared_ptr<detail::Items> Call::items() {
  rpc::ServedPeer& peer = state_->peer;
  rpc::PendingCalls& calls = peer.pending();
  ++peer.loop.stats.streams;
  // What an element of a batch is answered with has its place in the array; a notification has no name to send under.
  if (state_->batch == nullptr && !is_notification() && peer.sink.capabilities().items) {
    const auto send = [&](rpc::SentItems::Way way, std::string_view name, std::uint64_t credit) {
      const auto items =
          std::make_shared<rpc::SentItems>(peer.sink, peer.loop, state_->reply.form(), calls.waiting_until_writable,
                                           peer.limits.max_message_size, way, name, credit);
      state_->extras().items =
          std::shared_ptr<rpc::SentItems>{items.get(), [items](rpc::SentItems* sent) { sent->call_ended(); }};
      return items;
    };
    if (state_->rare && state_->rare->credit != 0)
      return send(rpc::SentItems::Way::credit, message_->id(), state_->rare->credit);
    const std::string token = progress_token(params(), reader());
    if (!token.empty()) return send(rpc::SentItems::Way::progress, token, 0);
  }
  return std::make_shared<rpc::GatheredItems>(item_codec(), limits(), peer.loop.stats, peer.calls);
}

std::shared_ptr<detail::Input> Call::input() {
  if (!state_->rare || !state_->rare->has_input || is_notification()) return nullptr;
  rpc::ServedPeer& peer = state_->peer;
  const auto input = std::make_shared<rpc::ReceivedInput>(peer.sink, peer.loop, peer.limits, state_->reply.form(),
                                                          message_->id(), peer.pending().load);
  state_->rare->input =
      std::shared_ptr<rpc::ReceivedInput>{input.get(), [input](rpc::ReceivedInput* read) { read->call_ended(); }};
  return input;
}

void Call::renew_watchdog_slot() noexcept {
  if (watchdog_slot_ != nullptr) watchdog_slot_ = state_->peer.loop.services.watchdog_slot;
}

detail::BlockingPool* Call::blocking_pool() const noexcept { return state_->peer.loop.services.blocking_pool; }

TaskScope& Call::tasks() noexcept { return state_->peer.loop.tasks; }

const std::shared_ptr<detail::Executor>& Call::executor() const noexcept { return state_->peer.loop.tasks.executor(); }

bool Call::at_turn_end(void (*after)() noexcept) noexcept {
  rpc::LoopContext& loop_context = state_->peer.loop;
  if (!loop_context.services.has_turns) return false;
  loop_context.services.after_turn = after;
  return true;
}

Writer* Call::begin_result() {
  if (state_->answered) [[unlikely]] {
    ReplySink* const late = late_sink();
    return late != nullptr ? late->begin_result() : nullptr;
  }
  if (is_notification()) return nullptr;
  Writer& writer = state_->peer.loop.codecs.writer_of(state_->reply.form());
  writer.reset(state_->reply.begin());
  if (state_->own_form) [[unlikely]]
    rpc::use_own_form(writer, *method_);
  return &writer;
}

// The way of nearly every call: what follows the last check is a jump into the sink.
void Call::end_result() {
  rpc::CallState& state = *state_;
  if (state.answered || state.rare || !state.reply.begun() ||
      state.peer.loop.codecs.writer_of(state.reply.form()).failed() || !state.reply.append_end(message_->id()))
      [[unlikely]]
    return end_result_slowly();
  state.answered = true;
  state.reply.close_written();
}

void Call::integer_result(std::int64_t value) {
  rpc::CallState& state = *state_;
  const bool is_usual = !state.answered && !state.rare && !is_notification();
  const bool is_appended = is_usual && (state.own_form ? append_packed(value)
                                                       : state.peer.loop.codecs.readers.reader->is_json() &&
                                                             state.reply.append_integer(value, message_->id()));
  if (!is_appended) [[unlikely]] {
    if (Writer* writer = begin_result(); writer != nullptr && !writer->packs_integer(value)) writer->integer(value);
    return end_result();
  }
  state.answered = true;
  state.reply.close_written();
}

bool Call::append_packed(std::int64_t value) {
  const detail::Packing* const packing = method_->packing();
  if (packing == nullptr || packing->result.integer_bytes == 0 || !state_->reply.is_native()) return false;
  static_assert(detail::PackedInteger::kBytesMax <= message::MessageWriter::kPackedResultMax);
  return state_->reply.append_packed(detail::PackedInteger{packing->result, value}.view(), message_->id());
}

void Call::end_result_slowly() {
  if (ReplySink* const late = late_sink()) return late->end_result();
  if (state_->answered) return;
  state_->answered = true;
  rpc::LoopContext& loop_context = state_->peer.loop;
  const int code =
      finish_reply(state_->peer.sink, state_->reply, loop_context, *method_, message_->id(), is_notification());
  if (state_->rare) answered(code);
}

// The link and the hooks may be anybody's.
void Call::answered(int code) noexcept {
  rpc::BatchReply* const batch = state_->batch != nullptr && !is_notification() ? &state_->batch->current() : nullptr;
  if (state_->rare->link) rpc::complete_link(std::move(state_->rare->link), code, batch);
  rpc::call_hooks(state_->peer.loop, state_->rare->hooks, code);
}

void Call::encoded_result(std::string_view value, std::string_view failure) {
  if (ReplySink* const late = late_sink()) return late->encoded_result(value, failure);
  if (Writer* writer = begin_result()) {
    state_->reply.append(value);
    if (!failure.empty()) writer->fail(failure);
  }
  end_result_slowly();  // which minds that the text is another's
}

// Of what was written by a Writer as `end_result` is.
void Call::cached_result(std::string_view value, bool compact) {
  rpc::CallState& state = *state_;
  if (!compact || state.answered || state.rare || is_notification()) [[unlikely]]
    return encoded_result(value, {});
  state.reply.begin().append(value);
  if (!state.reply.append_end(message_->id())) [[unlikely]] {
    state.reply.discard();
    return error(rpc::reply_too_large());
  }
  state.answered = true;
  state.reply.close_written();
}

void Call::error(const Error& error) {
  if (ReplySink* const late = late_sink()) return late->error(error);
  // An answer that is begun still has failed on its last byte, for want of memory.
  if (state_->answered && !state_->reply.begun()) return;
  state_->answered = true;
  if (!is_notification()) {
    rpc::answer_within_memory(state_->peer.sink, state_->reply, [&] {
      rpc::send_error(state_->reply, state_->peer.loop, *method_, error, message_->id());
    });
  }
  if (state_->rare) answered(error.code());
}

void Call::error_in_flight() { error(rpc::error_of_exception(state_->peer.loop, *method_)); }

// A call that has lost the loop while its params were decoded is in flight by now.
void Call::use_own_form() noexcept {
  state_->own_form = !method_->keeps_results();
  const ReplySink* const late = late_sink();
  PendingCall* const call =
      late != nullptr && late->calls_ != nullptr ? late->calls_->find(late->slot_, late->generation_) : nullptr;
  if (call != nullptr) call->own_form = state_->own_form;
}
bool Call::uses_own_form() const noexcept { return state_->own_form; }

MessageForm Call::form() const noexcept { return state_->reply.form(); }

CallBounds Call::bounds() const { return rpc::bounds_of(*state_); }

const Principal* Call::principal() const noexcept { return state_->peer.principal(); }

rpc::BrokerPeer* Call::broker_peer() const noexcept { return state_->peer.broker.get(); }

bool Call::can_be_left() const noexcept {
  return state_->batch == nullptr && state_->peer.sink.capabilities().direct_reply &&
         (!state_->rare || state_->rare->hooks.empty());
}

void Call::leave() noexcept { state_->answered = true; }

void Call::invalid_params(const Reader& reader) { error(decode_error(reader)); }

ReplySink Call::detach() { return detach(false); }

ReplySink Call::detach_within_turn() { return detach(true); }

ReplySink Call::detach(bool within_turn) {
  if (ReplySink* const late = late_sink()) return std::move(*late);
  if (state_->answered) return {};
  rpc::ServedPeer& peer = state_->peer;
  rpc::PendingCalls& calls = peer.pending();
  state_->reply.discard();  // of a result that was begun nothing may stay behind
  const PendingCall& call = calls.add(*state_, *message_, *method_, within_turn);
  WIRECALL_ASSERT(state_->waits && call.active);
  state_->answered = true;
  return {peer.calls, call.slot, call.generation};
}

void Call::lose_loop(std::chrono::nanoseconds ran) {
  rpc::CallExtras& extras = state_->extras();
  if (extras.late_sink) return;
  // Its time began before it ran, at the latest.
  if (!extras.bounded && rpc::bounds_of(*state_).deadline != kNoDeadline) {
    const Scheduler& scheduler = *state_->peer.loop.scheduler;
    const std::chrono::nanoseconds over = extras.bounds.began - (scheduler.now() - ran);
    extras.bounds.deadline -= std::max(over, std::chrono::nanoseconds{0});
  }
  extras.late_sink = detach();
}

ReplySink* Call::late_sink() const noexcept {
  return state_->rare && state_->rare->late_sink ? &*state_->rare->late_sink : nullptr;
}

// ---- ReplySink: the answer comes later ----

ReplySink::ReplySink(std::shared_ptr<rpc::PendingCalls> calls, std::uint32_t slot, std::uint32_t generation) noexcept
    : calls_(std::move(calls)), slot_(slot), generation_(generation) {}

ReplySink::ReplySink(ReplySink&& other) noexcept = default;

ReplySink& ReplySink::operator=(ReplySink&& other) noexcept {
  if (this != &other) {
    ReplySink dropped{std::move(*this)};
    calls_ = std::move(other.calls_);
    slot_ = other.slot_;
    generation_ = other.generation_;
  }
  return *this;
}

ReplySink::~ReplySink() {
  if (calls_ == nullptr) return;
  if (wanted()) {
    error(Error{ErrorCode::internal_error});
  } else {
    calls_->release(slot_, generation_);
  }
}

bool ReplySink::wanted() const noexcept { return calls_ != nullptr && calls_->find(slot_, generation_) != nullptr; }

void ReplySink::outlive_turn(std::chrono::nanoseconds began) {
  if (PendingCall* const call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr)
    calls_->outlive_turn(*call, began);
}

void ReplySink::keeps(std::size_t bytes) noexcept {
  if (PendingCall* const call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr)
    calls_->keep_params(*call, bytes);
}

Writer* ReplySink::begin_result() {
  PendingCall* call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr;
  if (call == nullptr || call->notification) return nullptr;
  Writer& writer = calls_->owner->loop.codecs.writer_of(call->form);
  writer.reset(calls_->reply_to(*call).begin());  // what was begun before and not ended is dropped
  if (call->own_form) rpc::use_own_form(writer, *call->method);
  return &writer;
}

void ReplySink::end_result() {
  PendingCall* call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr;
  if (call == nullptr) return;
  const int code = finish_reply(calls_->owner->sink, calls_->reply_to(*call), calls_->owner->loop, *call->method,
                                call->id, call->notification);
  calls_->finish(*call, code);  // last: a hook may destroy this sink
}

void ReplySink::encoded_result(std::string_view value, std::string_view failure) {
  if (Writer* writer = begin_result()) {
    calls_->find(slot_, generation_)->reply->append(value);
    if (!failure.empty()) writer->fail(failure);
  }
  end_result();
}

void ReplySink::response(std::string_view text, std::string_view id, int code) {
  PendingCall* call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr;
  if (call == nullptr) return;
  if (!call->notification) {
    const rpc::LoopContext& loop_context = calls_->owner->loop;
    rpc::Reply& reply = calls_->reply_to(*call);
    rpc::answer_within_memory(calls_->owner->sink, reply, [&] {
      if (reply.response(text, id, call->id)) return;
      const Error error = rpc::reply_too_large();
      code = error.code();
      rpc::send_error(reply, loop_context, *call->method, error, call->id);
    });
  }
  calls_->finish(*call, code);  // last: a hook may destroy this sink
}

void ReplySink::error(const Error& error) {
  PendingCall* call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr;
  if (call == nullptr) return;
  const rpc::LoopContext& loop_context = calls_->owner->loop;
  if (!call->notification) {
    rpc::Reply& reply = calls_->reply_to(*call);
    rpc::answer_within_memory(calls_->owner->sink, reply,
                              [&] { rpc::send_error(reply, loop_context, *call->method, error, call->id); });
  }
  calls_->finish(*call, error.code());  // last: a hook may destroy this sink
}

void ReplySink::error_in_flight() {
  const PendingCall* call = calls_ != nullptr ? calls_->find(slot_, generation_) : nullptr;
  if (call != nullptr) error(rpc::error_of_exception(calls_->owner->loop, *call->method));
}

}  // namespace wirecall
