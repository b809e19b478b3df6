// wc_server: a Server, or one of somebody else's to which a module adds methods; with where its log goes and what
// wc_server_handle keeps. It runs once: what may change before that is refused from then on.
#pragma once

#include <atomic>
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

  enum class Phase : unsigned char { before_run, running, over };

  wirecall::c::Logging log;
  std::unique_ptr<wirecall::Server> owned;  // null for another's
  wirecall::Server* server = nullptr;
  wirecall::Registry* registry = nullptr;
  std::deque<std::string> endpoints;  // its elements stay where they are
  wirecall::Buffer request;           // of wc_server_handle
  wirecall::Buffer reply;
  bool serving = false;
  std::atomic<Phase> phase{Phase::before_run};
};

namespace wirecall::c {

// Each returns WC_OK, or the status of a function that may not be called now.
[[nodiscard]] int require_before_run(const wc_server* server) noexcept;
/// For what a module may not do with the server to which it adds methods.
[[nodiscard]] int require_owner(const wc_server* server) noexcept;
[[nodiscard]] int require_owner_before_run(const wc_server* server) noexcept;

}  // namespace wirecall::c
