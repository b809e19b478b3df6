// OwnConnection: a connection by a program's own Transport (wirecall/transport.hpp), for a loop to attach.
#pragma once

#include <memory>

#include "transport/pending_connection.hpp"
#include "wirecall/transport.hpp"

namespace wirecall::transport {

class OwnConnection final : public UnattachedStream {
 public:
  /// `transport` is not null.
  explicit OwnConnection(std::unique_ptr<Transport> transport) noexcept : transport_(std::move(transport)) {}
  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop) override;

 private:
  std::unique_ptr<Transport> transport_;
};

}  // namespace wirecall::transport
