// Protocols: makes the connections of a server's port, each of the protocol that its peer has begun to speak.
// Immutable; lives as long as the connections.
#pragma once

#include "connection/protocol_detector.hpp"
#include "framing/json_text.hpp"
#include "http/browser_access.hpp"

namespace wirecall::net {

class Protocols final : public ChannelFactory {
 public:
  /// Both outlive the connections.
  Protocols(const framing::JsonTextSettings& text, const HttpSettings& http) noexcept : text_(&text), http_(&http) {}

  [[nodiscard]] std::unique_ptr<Channel> make(Host& host, framing::Protocol protocol,
                                              std::unique_ptr<transport::ByteStream> stream) const override;

 private:
  const framing::JsonTextSettings* text_;
  const HttpSettings* http_;
};

}  // namespace wirecall::net
