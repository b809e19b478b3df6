// What a service manager is told of a server that it has started, by the datagrams of sd_notify(3): nothing where
// $NOTIFY_SOCKET names no socket. Nobody waits for an answer. Any thread.
#pragma once

namespace wirecall::cli {

/// It serves, or has read its configuration again.
void notify_ready() noexcept;
/// It reads its configuration again; `notify_ready` follows.
void notify_reloading() noexcept;
/// It has drained and ends.
void notify_stopping() noexcept;

}  // namespace wirecall::cli
