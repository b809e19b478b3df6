// A server's metrics at /metrics.
#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/connection/peer.hpp"

namespace wirecall::cli {

/// One metric, requested on an HTTP connection that stays open.
inline long metric(net::RawPeer& peer, std::string_view name) {
  peer.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::size_t body_bytes = 0;
  for (std::string line = peer.line(); line.size() > 1; line = peer.line()) {
    constexpr std::string_view kLength = "Content-Length: ";
    if (line.starts_with(kLength)) body_bytes = std::stoul(line.substr(kLength.size()));
  }
  const std::string body = peer.take(body_bytes);
  const std::string begin = "\n" + std::string{name} + " ";
  const std::size_t at = body.find(begin);
  EXPECT_NE(at, body.npos) << body;
  return at == body.npos ? -1 : std::stol(body.substr(at + begin.size()));
}

}  // namespace wirecall::cli
