// A client over a core that a test has made.
#pragma once

#include <memory>
#include <utility>

#include "client/core.hpp"
#include "wirecall/client.hpp"

namespace wirecall {

struct detail::ClientAccess {
  static Client client(std::shared_ptr<net::ClientCore> core) { return Client{std::move(core)}; }
};

}  // namespace wirecall
