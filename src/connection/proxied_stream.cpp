// See proxied_stream.hpp.
#include "connection/proxied_stream.hpp"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>

#include "transport/socket.hpp"

namespace wirecall::net {

using framing::ProxiedClient;
using State = framing::ProxyHeader::State;

// Who starts it once the header has been read hears of the stream below at first hand.
void ProxiedStream::start(transport::StreamUser& user) {
  user_ = &user;
  if (state_ == State::complete) return below().start(user);
  below().start(*this);
}

void ProxiedStream::received(std::span<char> bytes) {
  if (state_ == State::complete) return user_->received(bytes);
  if (state_ == State::incomplete) read_header(bytes);
}

void ProxiedStream::read_header(std::span<char> bytes) {
  std::size_t taken = 0;
  state_ = header_.feed({bytes.data(), bytes.size()}, taken);
  if (state_ == State::incomplete) return;
  read_(header_.cause(), peer_source());
  if (state_ == State::malformed) return user_->failed(EPROTO);
  if (taken != bytes.size()) user_->received(bytes.subspan(taken));
}

std::string ProxiedStream::peer_source() const {
  const ProxiedClient& client = header_.client();
  if (state_ != State::complete || client.family == ProxiedClient::Family::none) return below().peer_source();
  if (client.family == ProxiedClient::Family::ipv4) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, client.address.data(), sizeof address.sin_addr);
    return transport::source_of(reinterpret_cast<const sockaddr*>(&address));
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  std::memcpy(&address.sin6_addr, client.address.data(), sizeof address.sin6_addr);
  return transport::source_of(reinterpret_cast<const sockaddr*>(&address));
}

}  // namespace wirecall::net
