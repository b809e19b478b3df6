// See peer_table.hpp.
#include "broker/peer_table.hpp"

#include "base/assert.hpp"
#include "base/dotted_name.hpp"
#include "broker/peer.hpp"

namespace wirecall::broker {

constexpr char kCounted = '~';
constexpr std::uint64_t kNumbersTriedMax = 8;

// No longer than any name: of a long one, the last characters give way.
static std::string numbered(std::string_view name, std::uint64_t number) {
  const std::string count = kCounted + std::to_string(number);
  std::size_t kept = std::min(name.size(), kNameBytesMax - count.size());
  const auto is_inside_character = [&] { return (static_cast<unsigned char>(name[kept]) & 0xC0) == 0x80; };
  while (kept != 0 && kept != name.size() && is_inside_character()) --kept;
  return std::string{name.substr(0, kept)} + count;
}

// Whether `given` is what one is named who wants to be `name`, where others have that.
static bool is_like(std::string_view given, std::string_view name) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  if (!given.starts_with(name) || given.size() < name.size() + 2 || given[name.size()] != kCounted) return false;
  return given.find_first_not_of(kDigits, name.size() + 1) == given.npos;
}

void PeerTable::add(Peer& peer) {
  WIRECALL_ASSERT(next(peer.number - 1) == nullptr);
  by_number_.emplace_hint(by_number_.end(), peer.number, &peer);
}

void PeerTable::remove(const Peer& peer) noexcept {
  WIRECALL_ASSERT(find(peer.name) != &peer);
  by_number_.erase(peer.number);
}

std::string PeerTable::free_name(const Peer& peer, std::string_view name) const {
  if (!by_name_.contains(name)) return std::string{name};
  std::uint64_t taken = 1;
  std::uint64_t free = 2;
  const auto is_taken = [&](std::uint64_t number) {
    const Peer* const known = find(numbered(name, number));
    return known != nullptr && known != &peer;
  };
  for (; free <= kNumbersTriedMax && is_taken(free); ++free) taken = free;
  if (free <= kNumbersTriedMax) return numbered(name, free);
  if (is_like(peer.name, name)) return peer.name;
  for (; is_taken(free); free *= 2) taken = free;
  // Between one that is taken and one that is free, there is one that is free behind one that is taken.
  while (free - taken > 1) {
    const std::uint64_t middle = taken + (free - taken) / 2;
    (is_taken(middle) ? taken : free) = middle;
  }
  return numbered(name, free);
}

void PeerTable::rename(Peer& peer, std::string name) {
  WIRECALL_ASSERT(!name.empty() && find(name) == nullptr);
  if (!peer.name.empty()) {
    auto entry = by_name_.extract(peer.name);
    peer.name = std::move(name);
    entry.key() = peer.name;
    by_name_.insert(std::move(entry));
    return;
  }
  peer.name = std::move(name);
  try {
    by_name_.emplace(peer.name, &peer);
  } catch (...) {
    peer.name.clear();
    throw;
  }
}

void PeerTable::hand_name(Peer& from, Peer& to) noexcept {
  WIRECALL_ASSERT(find(from.name) == &from && to.name.empty());
  auto entry = by_name_.extract(from.name);
  to.name = std::exchange(from.name, {});
  entry.key() = to.name;
  entry.mapped() = &to;
  by_name_.insert(std::move(entry));
}

void PeerTable::take_name(Peer& peer) noexcept {
  WIRECALL_ASSERT(find(peer.name) == &peer);
  by_name_.erase(peer.name);
}

}  // namespace wirecall::broker
