// Proxies: which connections come through a proxy, where a server requires the PROXY header (Options::proxy_protocol):
// all by TCP, and of these only what connects from Options::proxy_from. Owned by a serving loop; used on its thread.
#pragma once

#include "base/log_pause.hpp"
#include "rpc/loop_context.hpp"
#include "transport/byte_stream.hpp"
#include "transport/networks.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

class Proxies {
 public:
  enum class Way : std::uint8_t {
    direct,   ///< nothing stands between
    proxied,  ///< it begins with a header
    refused,  ///< it should, and is of nobody who is believed
  };

  /// All outlive it. Throws std::invalid_argument where headers are required, and nobody is believed.
  Proxies(const Options& options, rpc::LoopContext& loop_context);

  /// Of a connection whose socket that is; -1 for none.
  [[nodiscard]] Way way_of(int socket);
  /// The stream behind the header.
  [[nodiscard]] std::unique_ptr<transport::ByteStream> behind_header(std::unique_ptr<transport::ByteStream> stream);

 private:
  void refuse(std::string_view cause, const std::string& source);

  const Options* options_;
  rpc::LoopContext* loop_context_;
  const transport::Networks from_;
  LogPause refused_;
};

}  // namespace wirecall::net
