// Options::tls as the transport takes them. Any thread.
#pragma once

#include <memory>

#include "transport/tls_context.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// Null where no TLS is spoken. Throws std::invalid_argument for what does not go together, and for files that cannot
/// be used. Warns in the log of keys that others may read, and of certificates that clients do not accept, or soon will
/// not. `former` is the one that it takes the place of; null for none.
[[nodiscard]] std::shared_ptr<const transport::TlsServerContext> make_tls_context(
    const Options& options, const transport::TlsServerContext* former = nullptr);

}  // namespace wirecall::net
