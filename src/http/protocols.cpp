// See protocols.hpp.
#include "http/protocols.hpp"

#include "connection/message_connection.hpp"
#include "connection/tls_service.hpp"
#include "framing/content_length.hpp"
#include "framing/length_prefix.hpp"
#include "http/http_connection.hpp"
#include "http/plain_http.hpp"

namespace wirecall::net {

using framing::Protocol;

std::unique_ptr<Channel> Protocols::make(Host& host, Protocol protocol,
                                         std::unique_ptr<transport::ByteStream> stream) const {
  std::unique_ptr<framing::Framing> framing;
  Stats& stats = host.loop_context.stats;
  switch (protocol) {
    case Protocol::json_text:
      ++stats.protocol_json;
      framing = std::make_unique<framing::JsonText>(*text_);
      break;
    case Protocol::content_length:
      ++stats.protocol_content_length;
      framing = std::make_unique<framing::ContentLength>(host.limits);
      break;
    case Protocol::length_prefix:
      ++stats.protocol_length_prefix;
      framing = std::make_unique<framing::LengthPrefix>(host.limits);
      break;
    case Protocol::http:
      ++stats.protocol_http;
      return std::make_unique<HttpConnection>(host, *http_, std::move(stream));
    case Protocol::plain_http:
      ++stats.protocol_unknown;
      framing = std::make_unique<PlainHttp>();
      break;
    case Protocol::tls:
    case Protocol::unknown:
    case Protocol::undetermined:
      ++stats.protocol_unknown;
      framing = std::make_unique<framing::Unknown>();
      break;
  }
  rpc::Credential certificate = certificate_of(*stream);
  auto made = std::make_unique<MessageConnection>(host, std::move(stream), std::move(framing));
  made->identify(std::move(certificate));
  return made;
}

}  // namespace wirecall::net
