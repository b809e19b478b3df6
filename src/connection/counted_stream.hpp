// CountedStream: a ByteStream that knows how many bytes it was given to send. A client has to know what of its output
// the system may have seen; a server does not, and its connections are small because they keep nothing that they do not
// need. Owned by a connection, as any ByteStream; used on its loop's thread.
#pragma once

#include "transport/forwarding_stream.hpp"

namespace wirecall::net {

class CountedStream final : public transport::ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  void send(Buffer bytes, bool prompt) override {
    bytes_ += bytes.size();
    ForwardingStream::send(std::move(bytes), prompt);
  }

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace wirecall::net
