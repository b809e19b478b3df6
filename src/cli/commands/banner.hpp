// The banner of `wirecall serve`: every way in, with lines to copy; for programs that read the log as JSON, a record of
// it. Pure but for the log.
#pragma once

#include "cli/commands/serve.hpp"

namespace wirecall::cli {

/// One set of lines for each kind of endpoint: TCP, unix sockets, datagrams.
[[nodiscard]] std::string banner(const ServeOptions& options, std::span<const Endpoint> endpoints,
                                 const Registry& registry);

/// Where it listens, and what is to be known of it to connect.
void log_banner(const LogSink& log, const ServeOptions& options, std::span<const Endpoint> endpoints,
                const Registry& registry);

}  // namespace wirecall::cli
