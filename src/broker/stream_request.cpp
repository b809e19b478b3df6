// See stream_request.hpp.
#include "broker/stream_request.hpp"

#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "rpc/call_options.hpp"

namespace wirecall::broker {

std::string_view progress_token(Reader& reader, std::string_view params) {
  constexpr std::string_view kName = wirecall::detail::kProgressToken;
  if (params.empty() || params.front() != '{' ||
      ::memmem(params.data(), params.size(), kName.data(), kName.size()) == nullptr) [[likely]]
    return {};
  const std::string_view token = members_of<1>(reader, params, {kName}).front();
  const bool is_token = !token.empty() && (token.front() == '"' || token.front() == '-' ||
                                           (token.front() >= '0' && token.front() <= '9'));
  return is_token ? token : std::string_view{};
}

bool asks_for_progress(Reader& reader, std::string_view params) {
  if (params.empty()) return false;
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return false;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    if (name == wirecall::detail::kProgressToken) return true;
    static_cast<void>(reader.skip());
  }
  return false;
}

std::unique_ptr<RelayedStream> stream_of(rpc::LoopContext& loop, const Received& message) {
  const bool by_credit = message.has(Member::stream);
  const std::string_view token =
      by_credit ? std::string_view{} : progress_token(*loop.codecs.readers.reader, message.params());
  if (!by_credit && token.empty()) [[likely]]
    return nullptr;
  auto stream = std::make_unique<RelayedStream>();
  stream->withheld = by_credit ? rpc::read_count(loop, message[Member::stream]).value_or(1) : RelayedCredit::kEndless;
  stream->token = token;
  return stream;
}

std::uint64_t first_credit(const RelayedCall& call) noexcept {
  return std::min(call.stream->withheld, RelayedCredit::kFirst);
}

void edit_stream(rpc::LoopContext& loop, const RelayedCall& call, const Received& message, StreamEdits& edits,
                 Splice& splice) {
  const bool by_credit = message.has(Member::stream);
  const std::string_view token = by_credit || (!call.stream && !call.extras)
                                     ? std::string_view{}
                                     : progress_token(*loop.codecs.readers.reader, message.params());
  if (!call.stream) {
    splice.replace(message[Member::id], edits.id.view());
    if (by_credit) splice.remove(message[Member::stream]);
    if (!token.empty()) splice.remove(token);
    return;
  }
  edits.credit = Digits{first_credit(call)};
  if (by_credit) {
    splice.replace(message[Member::id], edits.id.view());
    return splice.replace(message[Member::stream], edits.credit->view());
  }
  edits.token.append("\"").append(edits.id.digits()).append("\"");
  splice.replace(token, edits.token);
  edits.id_and_stream = edits.id.view();
  if (!call.stream->without_credit) edits.id_and_stream.append(R"(,"stream":)").append(edits.credit->view());
  splice.replace(message[Member::id], edits.id_and_stream);
}

}  // namespace wirecall::broker
