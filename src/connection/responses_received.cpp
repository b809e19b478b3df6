// See responses_received.hpp.
#include "connection/responses_received.hpp"

#include "message/error_text.hpp"

namespace wirecall::net {

void MessageConnection::Responses::accept(const Received& response) const {
  if (connection_->dispatcher_.response(response)) return;
  if (connection_->caller_ == nullptr) {
    ++connection_->host_->loop_context.stats.responses_dropped;
  } else if (!connection_->caller_->response(response)) {
    connection_->end(CloseReason::unreadable);
  }
}

void MessageConnection::Responses::accept_all(const Received& batch, EncodedText encoded) const {
  connection_->charge(batch.batch_size);
  BatchElements elements{batch.text};
  Received element;
  Buffer json;
  for (std::size_t left = rpc::kRefusedElementsMax; left != 0 && !connection_->over() && elements.next(element);
       --left) {
    if (element.kind == MessageKind::response) accept_element(element, encoded, {}, json);
  }
}

// What others wait for stays in the order in which it was sent, and costs the sender's share as any element does. A
// caller has had its own by accept_all.
void MessageConnection::Responses::accept_batched(const Received& response, EncodedText batch,
                                                  std::string_view element) const {
  if (connection_->caller_ != nullptr || !are_awaited()) return;
  if (batch.empty()) return accept(response);
  Received own = response;
  Buffer json;
  accept_element(own, batch, element, json);
}

// One of a batch, as it is, or in JSON for who does not take it so. `element` is the whole of it where it may be handed
// on: at a server.
void MessageConnection::Responses::accept_element(Received& response, EncodedText batch, std::string_view element,
                                                  Buffer& json) const {
  if (batch.empty()) return accept(response);
  message::NativeTranscoder::restore(batch.encoding, batch.text, response);
  if (!element.empty()) response.text = element;
  if (connection_->takes_encoded(response)) return accept(response);
  json.clear();
  if (element.empty()) {
    unpack_result(response, json);
    return accept(response);
  }
  const Limits& limits = connection_->host_->limits;
  const auto status = connection_->host_->loop_context.codecs.transcoder(batch.encoding).to_json(element, limits, json);
  if (status != message::Transcoder::Status::done) return;
  Received plain;
  if (read_message(json.padded(), limits, true, plain).status == ScanStatus::complete) accept(plain);
}

// Where the result has no form in JSON, the response is one of an error.
void MessageConnection::Responses::unpack_result(Received& response, Buffer& json) const {
  const std::string_view why = connection_->host_->loop_context.codecs.native(response.encoding)
                                   .unpack(response, connection_->host_->limits, json);
  if (why.empty()) return;
  json.clear();
  json.append(message::error_text(message::unrepresentable_result(why)));
  const std::string_view error = json.padded();
  response.spans[static_cast<std::size_t>(Member::error)] = {error.data(), error.size()};
  response.present &= ~bit_of(Member::result);
  response.present |= bit_of(Member::error);
}

}  // namespace wirecall::net
