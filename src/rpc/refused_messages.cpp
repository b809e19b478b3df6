// See refused_messages.hpp.
#include "rpc/refused_messages.hpp"

#include "message/error_text.hpp"
#include "message/own_error.hpp"

namespace wirecall::rpc {

// Whether somebody may wait for the answer to this element of a batch by its id.
static bool has_waiting_id(const Received& element) noexcept {
  return element.kind == MessageKind::request || (element.kind == MessageKind::invalid && element.has(Member::id));
}

void refuse(const Received& message, CallState& state, const Error& error) {
  state.peer.loop.stats.count_error(error.code());
  if (message.kind != MessageKind::notification) state.reply.error(error, message.id());
}

void reply_error(CallState& state, ErrorCode code, std::string_view data_json, std::string_view id_json) {
  state.peer.loop.stats.count_error(static_cast<int>(code));
  if (data_json.empty()) return state.reply.plain_error(code, id_json);
  state.reply.error(static_cast<int>(code), message_of(code), data_json, id_json);
}

void refuse_invalid(const Received& message, CallState& state) {
  ServedPeer& peer = state.peer;
  if (is_batch_over_limit(message)) {
    const auto why = [&] { return "the batch has more than " + std::to_string(peer.limits.batch) + " elements"; };
    return refuse_batch(peer, message,
                        Error::with_data(ErrorCode::invalid_request,
                                         peer.loop.refusals.data(ErrorCode::invalid_request, "batch", why)));
  }
  const std::string data =
      peer.loop.refusals.data(ErrorCode::invalid_request, message.fault == Fault::id_limit ? "id" : "",
                              [&] { return message::why_invalid(message, state.batch != nullptr); });
  reply_error(state, ErrorCode::invalid_request, data, message.id());
}

void refuse_syntax(ServedPeer& peer, ScanStatus status, const message::Unreadable& where) {
  CallState state{peer, nullptr};
  const std::string data =
      peer.loop.refusals.data(ErrorCode::parse_error, status == ScanStatus::too_deep ? "depth" : "",
                              [&] { return message::why_unreadable(status, where); });
  reply_error(state, ErrorCode::parse_error, data, "null");
}

void refuse_size(ServedPeer& peer) {
  peer.loop.stats.count_error(static_cast<int>(ErrorCode::too_large));
  CallState{peer, nullptr}.reply.error(message::too_large("the message is larger than allowed"), "null");
}

// The bytes are counted before any is written.
void refuse_batch(ServedPeer& peer, const Received& batch, const Error& error) {
  const std::string head = std::string{message::kErrorReplyHead} + message::error_text(error) + R"(,"id":)";
  const std::size_t bytes_max = std::min(peer.limits.soft_output, peer.limits.max_message_size);
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
    if (bytes > bytes_max) peer.sink.close();
    return;
  }
  const bool each = bytes > 1 && bytes <= bytes_max;
  if (bytes > bytes_max) peer.sink.close();  // what waits by its id is not told otherwise
  OutgoingMessage message{peer.sink};
  Buffer& out = message.text();
  const auto append = [&](std::string_view id) {
    peer.loop.stats.count_error(error.code());
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
  message.close_compact_as(peer.form);
}

}  // namespace wirecall::rpc
