// PeerTable: the peers of one broker, by their numbers, which are those of their connections in order, and by the names
// that they have been given. Owned by the Router; the peers are not its own. One thread. Pure.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "base/seeded_hash.hpp"

namespace wirecall::broker {

class Peer;

class PeerTable {
 public:
  PeerTable() = default;
  PeerTable(PeerTable&&) = delete;

  /// A peer with a number larger than all others. Throws std::bad_alloc.
  void add(Peer& peer);
  /// It has no name any more.
  void remove(const Peer& peer) noexcept;
  /// The peer of that number, and of that name; null for none.
  [[nodiscard]] Peer* find(std::uint64_t number) const noexcept {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
  }
  [[nodiscard]] Peer* find(std::string_view name) const noexcept {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// The first peer in the order of their connections whose number is larger; null for none.
  [[nodiscard]] Peer* next(std::uint64_t after) const noexcept {
    const auto found = by_number_.upper_bound(after);
    return found == by_number_.end() ? nullptr : found->second;
  }
  /// Calls visit(Peer&) for each, in that order.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto& [number, peer] : by_number_) visit(*peer);
  }

  /// `name`, or else the same with a number behind it: where many are taken not the smallest, but one that is found by
  /// looking at few of them, or the one that the peer has.
  [[nodiscard]] std::string free_name(const Peer& peer, std::string_view name) const;
  /// The peer has that name from now on, which is free, in place of the one that it may have. Throws std::bad_alloc,
  /// and nothing has changed then.
  void rename(Peer& peer, std::string name);
  /// The name goes from one to another, who has none.
  void hand_name(Peer& from, Peer& to) noexcept;
  void take_name(Peer& peer) noexcept;

 private:
  std::map<std::uint64_t, Peer*> by_number_;                         // by Peer::number
  std::unordered_map<std::string_view, Peer*, SeededHash> by_name_;  // by Peer::name
};

}  // namespace wirecall::broker
