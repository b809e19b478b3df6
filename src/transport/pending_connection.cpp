// See pending_connection.hpp.
#include "transport/pending_connection.hpp"

#include "base/assert.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {

std::unique_ptr<ByteStream> PendingConnection::attach(Loop& loop) {
  WIRECALL_ASSERT(*this);
  std::unique_ptr<ByteStream> stream;
  if (stream_ != nullptr) {
    stream = stream_->attach(loop);
    stream_.reset();
  } else {
    stream = std::make_unique<SocketStream>(loop, socket_.get());
    static_cast<void>(socket_.release());
  }
  return stream;
}

}  // namespace wirecall::transport
