// wc_server: a Server, or one of somebody else's to which a module adds methods; with where its log goes and what
// wc_server_handle keeps.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "c/logging.hpp"
#include "wirecall.h"
#include "wirecall/bytes.hpp"
#include "wirecall/server.hpp"

struct wc_server {
  wc_server() = default;
  /// `another` outlives it.
  explicit wc_server(wirecall::Server& another) : server(&another), registry(&another.registry()) {}
  wc_server(wc_server&&) = delete;

  wirecall::c::Logging log;
  std::unique_ptr<wirecall::Server> owned;  // null for another's
  wirecall::Server* server = nullptr;
  wirecall::Registry* registry = nullptr;
  std::deque<std::string> endpoints;  // its elements stay where they are
  wirecall::Buffer request;           // of wc_server_handle
  wirecall::Buffer reply;
  bool serving = false;
};
