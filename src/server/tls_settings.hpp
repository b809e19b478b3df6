// Options::tls as the transport takes them. Any thread.
#pragma once

#include "transport/tls_settings.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// Throws std::invalid_argument for what does not go together. Warns in the log of keys that others may read.
[[nodiscard]] transport::TlsServerSettings tls_settings_of(const Options& options);

}  // namespace wirecall::net
