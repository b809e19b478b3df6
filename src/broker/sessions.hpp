// Sessions: rpc.hello and rpc.kick: which client a connection is, by its name and by the secret of a session that it
// goes on with. One thread. Implements docs/broker.md "Resuming a session".
#pragma once

#include <array>
#include <deque>

#include "broker/announcer.hpp"
#include "broker/context.hpp"
#include "broker/departures.hpp"
#include "broker/peer_table.hpp"
#include "broker/relay.hpp"
#include "rpc/broker.hpp"

namespace wirecall::broker {

/// The clients that rpc.kick has ended, which are not let in again for a time: under the name that they had, of the
/// same principal, or with the session that they had. Bounded; the oldest is forgotten first. Pure.
class KickedClients {
 public:
  static constexpr std::size_t kClientsMax = 1024;

  struct Client {
    std::string_view name;
    std::string_view principal;  ///< its name; empty where nobody has to say who he is
    std::uint64_t session = 0;   ///< 0 for none
  };

  void add(const Client& client, std::chrono::nanoseconds until);
  /// Calls visit(Client, until) for each, the first to come again first.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Kicked& one : kicked_)
      visit(Client{.name = one.name, .principal = one.principal, .session = one.session}, one.until);
  }
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

/// The secrets by which a client that comes back shows that it is who it was (rpc.hello `resume`). A secret is a number
/// that names the connection and when it was given, and a keyed hash of that and of the principal: so none has to be
/// kept, and one of another principal, or of another broker's run, is no one's. Pure.
class SessionKeys {
 public:
  /// With a key that nobody knows.
  SessionKeys();
  /// With that key, for tests of the hash.
  explicit SessionKeys(const std::array<std::uint64_t, 4>& key) noexcept : key_(key) {}

  /// For the broker of another process, which is to know the sessions of this one: with these its secrets are the same,
  /// and its numbers larger than any that this one gives in the next hour.
  struct Handed {
    std::array<std::uint64_t, 4> key;
    std::uint64_t last;
  };
  [[nodiscard]] Handed hand_over(std::chrono::nanoseconds now) const noexcept;
  explicit SessionKeys(const Handed& handed) noexcept : key_(handed.key), last_(handed.last) {}

  /// A new number for a session that begins at `now`: larger than all before, and told from all others of this run.
  [[nodiscard]] std::uint64_t begin(std::chrono::nanoseconds now) noexcept;
  /// When that session began, to a millisecond.
  [[nodiscard]] static std::chrono::nanoseconds began(std::uint64_t number) noexcept;

  /// 48 hexadecimal digits.
  [[nodiscard]] std::string secret_of(std::uint64_t number, std::string_view principal) const;
  /// The number of the session whose secret that is, for that principal; nothing for any other text. Compares in a time
  /// that tells nothing.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view secret, std::string_view principal) const;

 private:
  static constexpr unsigned kCountBits = 20;

  std::array<std::uint64_t, 4> key_;
  std::uint64_t last_ = 0;
};

/// SipHash-2-4 of `text` (Aumasson and Bernstein, 2012).
[[nodiscard]] std::uint64_t sip_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text) noexcept;

class Sessions {
 public:
  /// All referred to outlive it.
  Sessions(BrokerContext& context, Relay& relay, Departures& departures, Announcer& announcer) noexcept
      : context_(&context), relay_(&relay), departures_(&departures), announcer_(&announcer) {}

  /// A number for a connection that begins now: larger than all before.
  [[nodiscard]] std::uint64_t number() noexcept { return keys_.begin(context_->now()); }
  /// Gives the peer that name, or one like it when another has it. With the secret of a session, each empty for none,
  /// the connection that has that session is closed, and its name is the peer's. Throws Error -32004, -32007, -32602.
  rpc::HelloResult hello(Peer& peer, std::string_view name, std::string_view resume);
  /// Closes the connection of the client with that name; false when there is none.
  bool kick(const Peer& by, std::string_view name);
  [[nodiscard]] const SessionKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] const KickedClients& kicked() const noexcept { return kicked_; }
  /// Those of the broker that this one has taken over from; before there are any.
  void take_over(const SessionKeys& keys, KickedClients kicked) {
    keys_ = keys;
    kicked_ = std::move(kicked);
  }
  /// The peer has gone, and its name with it.
  void end(Peer& peer) noexcept;

 private:
  void refuse_kicked(Peer& peer, std::string_view name, std::string_view resume);
  void take_over(Peer& peer, std::string_view name, std::string_view resume);
  void give_name(Peer& peer, std::string_view name);
  void name_changed(std::string_view name) noexcept;

  BrokerContext* context_;
  Relay* relay_;
  Departures* departures_;
  Announcer* announcer_;
  SessionKeys keys_;
  KickedClients kicked_;
};

}  // namespace wirecall::broker
