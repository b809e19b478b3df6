#include "rpc/pending.hpp"

#include "base/reserve_extra.hpp"
#include "codec/json_compact.hpp"
#include "codec/json_scan.hpp"
#include "message/own_error.hpp"
#include "rpc/call_options.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/own_subscriptions.hpp"
#include "wirecall/packing.hpp"

namespace wirecall::rpc {

static OwnCountsRow* own_row(const LoopContext& loop_context, const Method& method) noexcept {
  return loop_context.services.own_counts != nullptr ? loop_context.services.own_counts->of(method) : nullptr;
}

// From a turn, in which nobody answers for the message any more.
static void send_late_batch(const ServedPeer& peer, BatchReply& batch) noexcept {
  try {
    send_batch(peer, batch);
  } catch (const std::bad_alloc&) {
    peer.sink.lose_answer();
  }
}

void PendingCall::expired() { calls->expired(*this); }

// Starts the timer for the time at which the call, or its next item, has to have come.
void PendingCalls::watch(PendingCall& call) {
  Scheduler* const scheduler = owner->loop.scheduler;
  if (scheduler == nullptr) return;
  const std::chrono::nanoseconds due = call.due(owner->limits);
  if (due != kNoDeadline) scheduler->start(call, due - scheduler->now());
}

void PendingCalls::expired(PendingCall& call) {
  if (call.due(owner->limits) > owner->loop.scheduler->now()) return watch(call);  // items have come
  end(call, message::make(ErrorCode::timeout, "the call was not answered in time", "maybe"));
}

std::chrono::nanoseconds PendingCall::due(const Limits& limits) const noexcept {
  if (!extras.items && !extras.input) return extras.bounds.deadline;
  const std::chrono::milliseconds gap_max{limits.call_timeout_ms};
  std::chrono::nanoseconds next{0};
  if (extras.items) next = extras.items->next_due(gap_max);
  if (extras.input) next = std::max(next, extras.input->next_due(gap_max));
  return std::min(extras.bounds.deadline, next);
}

void use_own_form(Writer& writer, const Method& method) noexcept {
  writer.use_own_form(method.packing() != nullptr ? &method.packing()->result : nullptr);
}

void PendingCalls::enter_name(PendingCall& call, bool stream) {
  const PendingCall::Key key{.id = call.id, .stream = stream};
  if (call.spare_node) {
    call.spare_node.key() = key;
    call.spare_node.mapped() = &call;
    call.entry = by_id.insert(std::move(call.spare_node));
  } else {
    call.entry = by_id.emplace(key, &call);
  }
  call.named = true;
}

void PendingCalls::remove_name(PendingCall& call) noexcept {
  if (std::exchange(call.named, false)) call.spare_node = by_id.extract(call.entry);
}

void PendingCalls::outlive_turn(PendingCall& call, std::chrono::nanoseconds began) {
  if (!call.within_turn) return;
  if (!call.notification && !call.named) enter_name(call, false);
  call.extras.bounds.began = began;
  call.extras.bounds.deadline = began + std::chrono::milliseconds{owner->limits.call_timeout_ms};
  watch(call);
  call.within_turn = false;
}

PendingCall& PendingCalls::add(CallState& state, const Received& message, const Method& method, bool within_turn) {
  if (free.empty()) {
    reserve_extra(free, slots.size() + 1);  // all of them may come back
    reserve_extra(slots, 1);
    slots.push_back(std::make_unique<PendingCall>(*this, static_cast<std::uint32_t>(slots.size())));
    free.push_back(slots.back()->slot);
  }
  WIRECALL_ASSERT(owner != nullptr);
  WIRECALL_DEBUG_ASSERT(is_consistent());
  PendingCall& call = *slots[free.back()];
  WIRECALL_ASSERT(call.slot == free.back() && !call.active && !call.taken && !call.counted);
  call.notification = message.kind == MessageKind::notification;
  call.form = state.reply.form();
  call.own_form = state.own_form;
  call.id = call.notification ? std::string_view{} : message.id();
  call.method = &method;
  call.within_turn = within_turn && !state.rare;
  CallBounds bounds;
  if (!call.within_turn) {
    bounds = bounds_of(state);
  } else if (owner->loop.services.own_counts != nullptr) {
    bounds.began = received_at(*owner);
  }
  const bool leaves_gap = state.batch != nullptr && !call.notification;
  std::shared_ptr<BatchReply> shared;  // whereto the batch moves, when it has not yet
  if (leaves_gap) {
    if (!state.batch->shared) shared = std::make_shared<BatchReply>();
    reserve_extra(state.batch->current().gaps, 1);
  }
  // Nobody can name a notification.
  if (!call.notification && !call.within_turn) enter_name(call, state.rare && (state.rare->items || state.rare->input));
  if (state.rare) call.extras = std::move(*state.rare);
  call.extras.bounds = bounds;
  try {
    if (!call.within_turn) watch(call);
  } catch (...) {
    take_back(call, state);
    throw;
  }
  // From here on nothing fails: until then the call can still be answered where it stands.
  if (leaves_gap) {
    if (shared) {
      *shared = std::move(state.batch->local);
      state.batch->shared = std::move(shared);
    }
    call.batch = state.batch->shared;
    call.gap = call.batch->gaps.size();
    call.batch->gaps.push_back({call.batch->text.size(), {}});
    ++call.batch->unanswered;
  }
  call.active = call.taken = call.counted = true;
  free.pop_back();
  ++active;
  ++load->calls;
  ++owner->loop.stats.calls_in_flight;
  if (OwnCountsRow* const row = own_row(owner->loop, method)) ++row->waiting;
  state.waits = true;
  if (call.id.size() > kBytesUncounted) [[unlikely]] {
    call.id_held.set(load, call.id.size());
    owner->sink.held_changed();
  }
  return call;
}

void PendingCalls::keep_params(PendingCall& call, std::size_t bytes) noexcept {
  if (bytes <= kBytesUncounted) return;
  call.params.set(load, bytes);
  owner->sink.held_changed();
}

// There was no memory for it: it is answered as a call that does not wait.
void PendingCalls::take_back(PendingCall& call, CallState& state) noexcept {
  remove_name(call);
  CallExtras extras = std::exchange(call.extras, {});
  if (state.rare) *state.rare = std::move(extras);
}

PendingCall* PendingCalls::find(std::uint32_t slot, std::uint32_t generation) noexcept {
  if (owner == nullptr) return nullptr;
  WIRECALL_ASSERT(slot < slots.size());
  PendingCall& call = *slots[slot];
  return call.active && call.generation == generation ? &call : nullptr;
}

void PendingCalls::finish(PendingCall& call, int code) noexcept {
  const std::uint32_t slot = call.slot;
  const std::uint32_t generation = call.generation;
  close(call, code);
  release(slot, generation);
}

void PendingCalls::end(PendingCall& call, const Error& error) noexcept {
  std::stop_source stop = call.extras.stop;
  if (!call.notification) {
    count_error(owner->loop, *call.method, error.code());
    Reply& reply = reply_to(call);
    answer_within_memory(owner->sink, reply, [&] { reply.error(error, call.id); });
  }
  LoopContext& loop_context = owner->loop;
  const std::uint32_t slot = call.slot;
  const std::uint32_t generation = call.generation;
  close(call, error.code());
  if (loop_context.stop_requests.ask(std::move(stop))) uncount(slot, generation);
}

// It has been answered.
void PendingCalls::close(PendingCall& call, int code) noexcept {
  WIRECALL_ASSERT(call.active && call.taken && active != 0);  // it is answered once
  const LoopContext& loop_context = owner->loop;
  loop_context.stop(call);
  remove_name(call);
  if (call.id.size() > kBytesUncounted) [[unlikely]] {
    call.id = std::string{};
    call.id_held.release();
  }
  call.active = false;
  --active;
  --loop_context.stats.calls_in_flight;
  if (OwnCountsRow* const row = own_row(loop_context, *call.method)) {
    --row->waiting;
    if (loop_context.scheduler != nullptr) row->record(loop_context.scheduler->now() - call.extras.bounds.began);
  }
  call.reply.reset();
  const std::shared_ptr<BatchReply> batch = std::move(call.batch);
  if (call.within_turn) {
    call.extras.bounds = {};  // it has nothing else
    if (batch) close_in_batch(*batch);
    return;
  }
  CallExtras extras = std::exchange(call.extras, {});
  if (extras.link) complete_link(std::move(extras.link), code, call.notification ? nullptr : batch.get());
  if (batch) close_in_batch(*batch);
  call_hooks(loop_context, extras.hooks, code);
}

// One of the batch's calls has been answered.
void PendingCalls::close_in_batch(BatchReply& batch) noexcept {
  WIRECALL_ASSERT(batch.unanswered != 0);
  const bool last = --batch.unanswered == 0;
  if (!batch.dispatched) return;
  if (last) return send_late_batch(*owner, batch);
  batch.held.set(load, std::max(batch.bytes, batch.text.capacity()));
  owner->sink.held_changed();
}

void PendingCalls::release(std::uint32_t slot, std::uint32_t generation) noexcept {
  WIRECALL_ASSERT(slot < slots.size());
  PendingCall& call = *slots[slot];
  if (!call.taken || call.active || call.generation != generation) return;
  call.taken = false;
  call.params.release();
  if (std::exchange(call.counted, false)) --load->calls;
  ++call.generation;
  free.push_back(slot);
  WIRECALL_DEBUG_ASSERT(is_consistent());
}

// Each slot is free or taken; the counts are those of the slots. Not looked at where there are many.
bool PendingCalls::is_consistent() const noexcept {
  if (slots.size() > 64) return true;
  const auto count = [&](bool PendingCall::* state) {
    return static_cast<std::size_t>(std::ranges::count_if(slots, [&](const auto& call) { return (*call).*state; }));
  };
  return count(&PendingCall::taken) + free.size() == slots.size() && count(&PendingCall::active) == active &&
         by_id.size() <= active && load->calls >= count(&PendingCall::counted);
}

// Its handler waits to be asked to stop, and nobody waits for it: that takes no place from other calls.
void PendingCalls::uncount(std::uint32_t slot, std::uint32_t generation) noexcept {
  PendingCall& call = *slots[slot];
  if (call.taken && call.generation == generation && std::exchange(call.counted, false)) --load->calls;
}

std::size_t PendingCalls::cancel(std::string_view id) {
  // What is asked to stop may end others, so each is looked for anew; none can be added meanwhile.
  std::size_t count = 0;
  for (auto found = by_id.find(id); found != by_id.end(); found = by_id.find(id), ++count)
    end(*found->second, Cancelled{});
  return count;
}

// Only the first is looked at: whoever has thousands of one id would make each message cost thousands of steps.
PendingCall* PendingCalls::find_stream(std::string_view id) noexcept {
  const auto first = by_id.lower_bound(id);
  return first != by_id.end() && first->first.id == id && first->first.stream ? first->second : nullptr;
}

bool PendingCalls::grant(std::string_view id, std::uint64_t more) {
  const PendingCall* const call = find_stream(id);
  if (call == nullptr || !call->extras.items) return false;
  call->extras.items->grant(more);
  return true;
}

bool PendingCalls::add_input(std::string_view id, const InputItem& item) {
  PendingCall* const call = find_stream(id);
  if (call == nullptr || !call->extras.input) return false;
  const std::shared_ptr<ReceivedInput> input = call->extras.input;
  const std::uint32_t slot = call->slot;
  const std::uint32_t generation = call->generation;
  if (const std::optional<Error> why = input->add(item)) {
    if (PendingCall* const still = find(slot, generation)) end(*still, *why);
  }
  return true;
}

bool PendingCalls::break_input(std::string_view id, const Error& error) {
  PendingCall* const call = find_stream(id);
  if (call == nullptr || !call->extras.input) return false;
  end(*call, error);
  return true;
}

// A stream that fails may end others, or begin some: those are not meant.
void PendingCalls::peer_ended() {
  if (subscriptions) subscriptions->end_all();
  const std::size_t count = slots.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (slots[slot]->active && slots[slot]->extras.items) slots[slot]->extras.items->peer_ended();
    if (slots[slot]->active && slots[slot]->extras.input) slots[slot]->extras.input->peer_ended();
  }
}

// Nobody waits for what a notification is answered with. Its hooks are told that it has been served, since nothing will
// tell them more.
void PendingCalls::let_notifications_go_on(LoopContext& loop_context, std::size_t count,
                                           std::chrono::nanoseconds until) noexcept {
  for (const std::unique_ptr<PendingCall>& call : slots) {
    if (!call->active || !call->notification) continue;
    const std::stop_source& stop = call->extras.stop;
    if (!stop.stop_possible()) {
      call->goes_on = true;  // in any case
    } else if (count != 0 && loop_context.stop_requests.ask_at(std::min(until, call->extras.bounds.deadline), stop)) {
      call->goes_on = true;
      --count;
    }
  }
}

void PendingCalls::abandon(LoopContext& loop_context) noexcept {
  owner = nullptr;
  if (const std::shared_ptr<OwnSubscriptions> ended = std::move(subscriptions)) ended->end_all();
  loop_context.stats.calls_in_flight -= active;
  for (const std::unique_ptr<PendingCall>& call : slots) {
    if (!call->active) continue;
    loop_context.stop(*call);
    if (OwnCountsRow* const row = own_row(loop_context, *call->method)) {
      --row->waiting;
      if (!call->goes_on) ++row->errors;
    }
    call->extras.items.reset();
    call->extras.input.reset();
    if (call->extras.link) complete_link(call->extras.link, static_cast<int>(ErrorCode::cancelled), nullptr);
  }
  stop_all(loop_context);
  for (const std::unique_ptr<PendingCall>& call : slots) {
    if (!call->active) continue;
    call_hooks(loop_context, call->extras.hooks, call->goes_on ? 0 : static_cast<int>(ErrorCode::cancelled));
  }
}

// What is asked to stop may end other calls as well, or begin some: those are not meant.
void PendingCalls::end_all(const Error& error) noexcept {
  const std::size_t count = slots.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (slots[slot]->active) end(*slots[slot], error);
  }
}

void PendingCalls::limit(std::size_t kept, std::chrono::nanoseconds until, const Error& error) {
  const std::size_t count = slots.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    PendingCall& call = *slots[slot];
    if (!call.active) continue;
    if (kept == 0) {
      end(call, error);
      continue;
    }
    --kept;
    if (call.extras.bounds.deadline <= until) continue;
    call.extras.bounds.deadline = until;
    watch(call);
  }
}

void PendingCalls::stop_all(LoopContext& loop_context) noexcept {
  const std::size_t count = slots.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (!slots[slot]->active || slots[slot]->goes_on) continue;
    const std::uint32_t generation = slots[slot]->generation;
    if (loop_context.stop_requests.ask(slots[slot]->extras.stop) && owner == nullptr)
      uncount(static_cast<std::uint32_t>(slot), generation);
  }
}

Reply& PendingCalls::reply_to(PendingCall& call) noexcept {
  if (!call.reply) {
    const std::size_t bytes_max = owner->limits.max_message_size;
    if (call.batch) {
      call.reply.emplace(call.batch->gaps[call.gap].reply, *call.batch, &owner->loop, bytes_max);
    } else {
      call.reply.emplace(&owner->sink, &owner->loop, call.form, bytes_max);
    }
  }
  return *call.reply;
}

void send_batch(const ServedPeer& peer, BatchReply& batch) {
  if (batch.count == 0) return;
  OutgoingMessage message{peer.sink};
  Buffer& out = message.text();
  if (batch.form.natively) peer.loop.codecs.native(batch.form.sent).begin_batch(out, batch.count);
  std::string_view text = batch.text.view();
  std::size_t from = 0;
  for (const BatchReply::Gap& gap : batch.gaps) {
    out.append(text.substr(from, gap.at - from));
    out.append(gap.reply.view());
    from = gap.at;
  }
  out.append(text.substr(from));
  if (!batch.form.natively) out.data()[out.size() - 1] = ']';  // in place of the last comma
  if (batch.raw) {
    message.close_as(batch.form);
  } else {
    message.close_compact_as(batch.form);
  }
  for (const std::shared_ptr<CallerLink>& link : std::exchange(batch.links, {})) link->complete(0);
}

void count_error(const LoopContext& loop_context, const Method& method, int code) noexcept {
  loop_context.stats.count_error(code);
  if (OwnCountsRow* const row = own_row(loop_context, method)) ++row->errors;
}

// A peer's parser must be able to read what a handler put into its error, and a reply is one line.
static bool make_compact(Buffer& text) {
  const char* const begin = text.padded().data();
  const char* const end = begin + text.size();
  const Scan scan = json::scan(text.view(), kDepthMax);
  if (scan.status != ScanStatus::complete) return false;
  if (json::Scanner<json::NativeOps>::skip_space(begin + scan.offset) != end) return false;
  text.set_end(json::compact(text.data(), text.view()));
  return true;
}

void send_error(Reply& reply, const LoopContext& loop_context, const Method& method, const Error& error,
                std::string_view id_json) {
  count_error(loop_context, method, error.code());
  if (error.data().empty()) return reply.error(error, id_json);
  reply.error(error.code(), error.message(), clean_data(loop_context, method, error).view(), id_json);
}

Buffer clean_data(const LoopContext& loop_context, const Method& method, const Error& error) {
  Buffer data{error.data()};
  if (!data.empty() && !make_compact(data)) {
    loop_context.write_log(LogLevel::error,
                           "method " + method.name() + ": the data of its error is not JSON: left out");
    data.clear();
  }
  return data;
}

static Error error_to_answer(const LoopContext& loop_context, const Method& method) {
  std::string text;
  try {
    throw;
  } catch (const LocalError& error) {
    text = error.message() + (error.data().empty() ? "" : " " + error.data());
  } catch (const Error& error) {
    return wirecall::detail::as_answer(error);
  } catch (const std::exception& exception) {
    text = exception.what();
  } catch (...) {
    text = "something that is not a std::exception";
  }
  loop_context.write_log(LogLevel::error, "method " + method.name() + " raised: " + text);
  return Error{ErrorCode::internal_error};
}

Error error_of_exception(const LoopContext& loop_context, const Method& method) noexcept {
  try {
    return error_to_answer(loop_context, method);
  } catch (const std::bad_alloc&) {
    // It was no Error, or there is no memory for a copy; and none for a line in the log.
    return Error{ErrorCode::internal_error};
  }
}

void complete_link(std::shared_ptr<CallerLink> link, int code, BatchReply* batch) noexcept {
  if (code != 0 || batch == nullptr) return link->complete(code);
  try {
    batch->links.push_back(std::move(link));
  } catch (const std::bad_alloc&) {
    link->complete(static_cast<int>(ErrorCode::internal_error));  // as events that are lost
  }
}

void call_hooks(const LoopContext& loop_context, std::vector<ReplyHook>& hooks, int code) noexcept {
  const std::vector<ReplyHook> called = std::move(hooks);
  hooks.clear();
  for (const ReplyHook& hook : called) {
    try {
      hook(Outcome{code});
    } catch (...) {
      loop_context.write_log(LogLevel::error, "a reply hook raised; ignored");
    }
  }
}

}  // namespace wirecall::rpc
