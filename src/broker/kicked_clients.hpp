// KickedClients: the clients that rpc.kick has ended, which are not let in again for a time: under the name that they
// had, of the same principal, or with the session that they had. Bounded; the oldest is forgotten first. One thread.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace wirecall::broker {

class KickedClients {
 public:
  static constexpr std::size_t kClientsMax = 1024;

  struct Client {
    std::string_view name;
    std::string_view principal;  ///< its name; empty where nobody has to say who he is
    std::uint64_t session = 0;   ///< 0 for none
  };

  void add(const Client& client, std::chrono::nanoseconds until);
  /// How long the client has to stay away from `now` on: 0 for one that may come.
  [[nodiscard]] std::chrono::nanoseconds left(const Client& client, std::chrono::nanoseconds now) noexcept;

 private:
  struct Kicked {
    std::string name;
    std::string principal;
    std::uint64_t session;
    std::chrono::nanoseconds until;
  };

  std::deque<Kicked> kicked_;  // those whose time ends first come first
};

}  // namespace wirecall::broker
