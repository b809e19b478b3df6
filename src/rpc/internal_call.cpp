// See internal_call.hpp.
#include "rpc/internal_call.hpp"

#include "base/decimal.hpp"
#include "message/call_text.hpp"
#include "message/cancel_request.hpp"

namespace wirecall::rpc {

// `members` are those that have been written: what else is found has come in by the params, which are none then.
static void handle_text(Dispatcher& caller, Buffer text, std::uint32_t members) {
  const std::string_view padded = text.padded();
  Received message;
  if (padded.size() > caller.limits().max_message_size) return caller.refuse_size();
  const Scan scan = read_message(padded, caller.limits(), true, message);
  if (scan.status != ScanStatus::complete || (message.present & ~members) != 0)
    return caller.refuse_syntax(scan.status == ScanStatus::too_deep ? scan.status : ScanStatus::malformed,
                                message::unreadable_at(padded, scan.offset));
  caller.handle(message);
}

void invoke(Dispatcher& caller, const InternalCall& call, std::string_view params_json) {
  constexpr std::uint32_t kAlways =
      bit_of(Member::jsonrpc) | bit_of(Member::method) | bit_of(Member::id) | bit_of(Member::params);
  std::uint32_t members = kAlways;
  Buffer text;
  message::begin_call(text, to_json(call.method), params_json);
  if (call.timeout_ms) {
    text.append(R"(,"timeout_ms":)");
    append_number(text, *call.timeout_ms);
    members |= bit_of(Member::timeout_ms);
  }
  if (call.credit != 0) {
    text.append(R"(,"stream":)");
    append_number(text, call.credit);
    members |= bit_of(Member::stream);
  }
  text.append(R"(,"id":)");
  text.append(call.id);
  text.push_back('}');
  handle_text(caller, std::move(text), members);
}

void cancel(Dispatcher& caller, std::string_view id) {
  handle_text(caller, Buffer{message::cancel_request(id)},
              bit_of(Member::jsonrpc) | bit_of(Member::method) | bit_of(Member::params));
}

}  // namespace wirecall::rpc
