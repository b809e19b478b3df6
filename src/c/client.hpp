// wc_client: a Client, and where its log goes.
#pragma once

#include <optional>

#include "c/entry.hpp"
#include "c/logging.hpp"
#include "wirecall.h"
#include "wirecall/client.hpp"

struct wc_client {
  wirecall::c::Logging log;
  std::optional<wirecall::Client> client;
};

namespace wirecall::c {

inline int no_client() noexcept { return fail(WC_ERROR_ARGUMENT, "there is no client"); }

}  // namespace wirecall::c
