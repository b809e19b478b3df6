#include "broker/kicked_clients.hpp"

#include <algorithm>

namespace wirecall::broker {

void KickedClients::add(const Client& client, std::chrono::nanoseconds until) {
  if (kicked_.size() == kClientsMax) kicked_.pop_front();
  kicked_.push_back({.name = std::string{client.name},
                     .principal = std::string{client.principal},
                     .session = client.session,
                     .until = until});
}

std::chrono::nanoseconds KickedClients::left(const Client& client, std::chrono::nanoseconds now) noexcept {
  // All have been given the same time.
  while (!kicked_.empty() && kicked_.front().until <= now) kicked_.pop_front();
  const auto is_it = [&](const Kicked& kicked) {
    if (client.session != 0 && client.session == kicked.session) return true;
    return !client.name.empty() && client.name == kicked.name && client.principal == kicked.principal;
  };
  const auto last = std::find_if(kicked_.rbegin(), kicked_.rend(), is_it);
  return last != kicked_.rend() ? last->until - now : std::chrono::nanoseconds{0};
}

}  // namespace wirecall::broker
