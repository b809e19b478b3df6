// See session_responses.hpp.
#include "connection/responses_received.hpp"

namespace wirecall::net {

void MessageConnection::Responses::accept(const Received& response) const {
  if (connection_->dispatcher_.response(response)) return;
  if (connection_->caller_ == nullptr) {
    ++connection_->host_->loop_context.stats.responses_dropped;
  } else if (!connection_->caller_->response(response)) {
    connection_->end(CloseReason::unreadable);
  }
}

void MessageConnection::Responses::accept_all(const Received& batch, std::string_view msgpack) const {
  connection_->charge(batch.batch_size);
  BatchElements elements{batch.text};
  Received element;
  Buffer json;
  for (std::size_t left = rpc::kRefusedElementsMax; left != 0 && !connection_->over() && elements.next(element);
       --left) {
    if (element.kind == MessageKind::response) accept_element(element, msgpack, {}, json);
  }
}

// What others wait for stays in the order in which it was sent, and costs the sender's share as any element does. A
// caller has had its own by accept_all.
void MessageConnection::Responses::accept_batched(const Received& response, std::string_view msgpack,
                                                  std::string_view element) const {
  if (connection_->caller_ != nullptr || !are_awaited()) return;
  if (msgpack.empty()) return accept(response);
  Received own = response;
  Buffer json;
  accept_element(own, msgpack, element, json);
}

// One of a batch, as it is, or in JSON for who does not take it so. `element` is the whole of it where it may be handed
// on: at a server.
void MessageConnection::Responses::accept_element(Received& response, std::string_view msgpack,
                                                  std::string_view element, Buffer& json) const {
  if (msgpack.empty()) return accept(response);
  message::Transcoder::restore(msgpack, response);
  if (!element.empty()) response.text = element;
  if (connection_->takes_msgpack(response)) return accept(response);
  json.clear();
  if (element.empty()) {
    unpack_result(response, json);
    return accept(response);
  }
  const Limits& limits = connection_->host_->limits;
  const auto status = connection_->host_->loop_context.codecs.transcoder().to_json(element, limits, json);
  if (status != message::Transcoder::Status::done) return;
  Received plain;
  if (read_message(json.padded(), limits, true, plain).status == ScanStatus::complete) accept(plain);
}

// Where the result has no form in JSON, the response is one of an error.
void MessageConnection::Responses::unpack_result(Received& response, Buffer& json) const {
  const std::string_view why =
      connection_->host_->loop_context.codecs.transcoder().unpack(response, connection_->host_->limits, json);
  if (why.empty()) return;
  json.clear();
  json.append(R"({"code":-32603,"message":"Internal error","data":{"reason":")");
  json.append(why);
  json.append("\"}}");
  const std::string_view error = json.padded();
  response.spans[static_cast<std::size_t>(Member::error)] = {error.data(), error.size()};
  response.present &= ~(std::uint32_t{1} << static_cast<unsigned>(Member::result));
  response.present |= std::uint32_t{1} << static_cast<unsigned>(Member::error);
}

}  // namespace wirecall::net
