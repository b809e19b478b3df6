// What a service manager is told of a server that it has started, by the datagrams of sd_notify(3): nothing where
// $NOTIFY_SOCKET names no socket. Nobody waits for an answer. Any thread. And the sockets that it passes to the server
// (sd_listen_fds(3)), or keeps for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/inherited_sockets.hpp"

namespace wirecall::cli {

/// It serves, or has read its configuration again.
void notify_ready() noexcept;
/// It reads its configuration again; `notify_ready` follows.
void notify_reloading() noexcept;
/// The process of that id serves in its place from now on.
void notify_main_process(std::int64_t pid) noexcept;
/// The sockets that the manager has passed to this process, with the endpoints that they are bound at; once, and before
/// there are other threads. Those that it has only kept for a process before this one are not `passed`. Throws
/// std::runtime_error for one that cannot be served.
[[nodiscard]] std::vector<transport::ListeningSocket> take_passed_sockets();
/// Whether the manager keeps sockets for the process that it starts in place of this one, should this one crash. It
/// says so by $FDSTORE.
[[nodiscard]] bool keeps_sockets() noexcept;
/// It keeps these, in place of those before; but for its own, which it passes anyway.
void keep_sockets(std::span<const transport::ListeningSocket> sockets) noexcept;
/// It has drained and ends.
void notify_stopping() noexcept;

}  // namespace wirecall::cli
