#include "rpc/pending.hpp"

#include <exception>
#include <utility>

#include "codec/json_compact.hpp"
#include "codec/json_scan.hpp"

namespace wirecall::rpc {

std::uint32_t PendingCalls::add(CallState& state, const Received& message, const Method& method) {
  if (free.empty()) {
    slots.emplace_back();
    free.push_back(static_cast<std::uint32_t>(slots.size() - 1));
  }
  const std::uint32_t slot = free.back();
  PendingCall& call = slots[slot];
  call.notification = message.kind == MessageKind::notification;
  call.id = call.notification ? std::string_view{} : message.id();
  call.method = &method;
  if (state.rare) call.extras = std::move(*state.rare);
  if (state.batch != nullptr && !call.notification) {
    BatchScope& scope = *state.batch;
    if (!scope.shared) scope.shared = std::make_shared<BatchReply>(std::move(scope.local));
    call.batch = scope.shared;
    call.gap = call.batch->gaps.size();
    call.batch->gaps.push_back({call.batch->text.size(), {}});
    ++call.batch->unanswered;
  }
  call.active = true;
  free.pop_back();
  ++active;
  return slot;
}

PendingCall* PendingCalls::find(std::uint32_t slot, std::uint32_t generation) noexcept {
  if (owner == nullptr) return nullptr;
  PendingCall& call = slots[slot];
  return call.active && call.generation == generation ? &call : nullptr;
}

void PendingCalls::finish(std::uint32_t slot, int code) {
  PendingCall& call = slots[slot];
  const std::shared_ptr<BatchReply> batch = std::move(call.batch);
  std::vector<ReplyHook> hooks = std::move(call.extras.hooks);
  const Workspace& workspace = *owner->workspace_;
  const std::uint32_t generation = call.generation + 1;
  call = PendingCall{};
  call.generation = generation;
  --active;
  free.push_back(slot);
  if (batch && --batch->unanswered == 0 && batch->dispatched) send_batch(*owner->outlet_, *batch);
  call_hooks(workspace, hooks, code);
}

void PendingCalls::abandon(const Workspace& workspace) noexcept {
  owner = nullptr;
  stop_all();
  for (PendingCall& call : slots) {
    if (call.active) call_hooks(workspace, call.extras.hooks, static_cast<int>(ErrorCode::cancelled));
  }
}

void PendingCalls::stop_all() noexcept {
  // Stopping a call may answer it and start others: only those that are here now are asked.
  const std::size_t count = slots.size();
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (!slots[slot].active) continue;
    std::stop_source stop = slots[slot].extras.stop;
    stop.request_stop();
  }
}

void send_batch(Outlet& outlet, BatchReply& batch) {
  if (batch.bytes <= 1) return;
  Buffer& out = outlet.open_message();
  std::string_view text = batch.text.view();
  std::size_t from = 0;
  for (const BatchReply::Gap& gap : batch.gaps) {
    out.append(text.substr(from, gap.at - from));
    out.append(gap.reply.view());
    from = gap.at;
  }
  out.append(text.substr(from));
  out.data()[out.size() - 1] = ']';  // in place of the last comma
  outlet.close_message();
}

namespace {

// A peer's parser must be able to read what a handler put into its error, and a reply is one line.
bool make_compact(Buffer& text) {
  const char* const begin = text.padded().data();
  const char* const end = begin + text.size();
  const Scan scan = json::scan(text.view(), kDepthMax);
  if (scan.status != ScanStatus::complete) return false;
  if (json::Scanner<json::NativeOps>::skip_space(begin + scan.offset) != end) return false;
  text.set_end(json::compact(text.data(), text.view()));
  return true;
}

}  // namespace

void send_error(Reply& reply, const Workspace& workspace, const Method& method, const Error& error,
                std::string_view id_json) {
  if (error.data().empty()) return reply.error(error, id_json);
  Buffer data{error.data()};
  if (!make_compact(data)) {
    workspace.write_log(LogLevel::error, "method " + method.name() + ": the data of its error is not JSON: left out");
    data.clear();
  }
  reply.error(error.code(), error.message(), data.view(), id_json);
}

Error error_of_exception(const Workspace& workspace, const Method& method) noexcept {
  std::string text;
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& exception) {
    text = exception.what();
  } catch (...) {
    text = "something that is not a std::exception";
  }
  workspace.write_log(LogLevel::error, "method " + method.name() + " raised: " + text);
  return Error{ErrorCode::internal_error};
}

void call_hooks(const Workspace& workspace, std::vector<ReplyHook>& hooks, int code) noexcept {
  const std::vector<ReplyHook> called = std::move(hooks);
  hooks.clear();
  for (const ReplyHook& hook : called) {
    try {
      hook(Outcome{code});
    } catch (...) {
      workspace.write_log(LogLevel::error, "a reply hook raised; ignored");
    }
  }
}

}  // namespace wirecall::rpc
