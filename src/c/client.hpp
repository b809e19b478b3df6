// wc_client: a Client, and where its log goes.
#pragma once

#include <atomic>
#include <initializer_list>
#include <optional>

#include "c/entry.hpp"
#include "c/logging.hpp"
#include "wirecall.h"
#include "wirecall/client.hpp"

struct wc_client {
  wirecall::c::Logging log;
  std::optional<wirecall::Client> client;
  std::atomic<bool> used{false};  // its log cannot be set any more
};

namespace wirecall::c {

/// Runs `action` with the client, which is used from then on. A name, or whatever else may not be NULL, is in
/// `required`.
template <class F>
int with_client(wc_client* client, std::initializer_list<const void*> required, F&& action) noexcept {
  if (client == nullptr) return fail(WC_ERROR_ARGUMENT, "there is no client");
  for (const void* const argument : required) {
    if (argument == nullptr) return fail_null();
  }
  client->used.store(true, std::memory_order_relaxed);
  return guarded([&] { return action(*client->client); });
}

}  // namespace wirecall::c
