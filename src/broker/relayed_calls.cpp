// See relayed_calls.hpp.
#include "broker/relayed_calls.hpp"

#include <charconv>
#include <system_error>

#include "base/reserve_extra.hpp"

namespace wirecall::broker {

RelayedCalls::RelayedCalls() = default;

std::optional<SlotNumber> RelayedCalls::take(std::string_view id_json) {
  if (free_ == kNoSlot) {
    const std::size_t first = blocks_.size() * kBlockSlots;
    if (first + kBlockSlots > std::size_t{1} << kSlotBits) return std::nullopt;
    reserve_extra(blocks_, 1);
    blocks_.push_back(std::make_unique<RelayedCall[]>(kBlockSlots));
    for (std::size_t i = kBlockSlots; i != 0; --i) {
      const auto slot = static_cast<SlotNumber>(first + i - 1);
      (*this)[slot].of_caller.after = free_;
      free_ = slot;
    }
  }
  const SlotNumber slot = free_;
  RelayedCall& call = (*this)[slot];
  WIRECALL_ASSERT(call.state == RelayedCall::State::unused && call.extras == nullptr && call.stream == nullptr);
  if (id_json.size() > RelayedCall::kIdBytesInside) call.long_id = std::make_unique<char[]>(id_json.size());
  std::memcpy(call.long_id ? call.long_id.get() : call.short_id.data(), id_json.data(), id_json.size());
  call.id_bytes = static_cast<std::uint32_t>(id_json.size());
  free_ = call.of_caller.after;
  call.of_caller = {};
  ++in_use_;
  return slot;
}

void RelayedCalls::give_back(SlotNumber slot) noexcept {
  RelayedCall& call = (*this)[slot];
  WIRECALL_ASSERT(call.state != RelayedCall::State::unused && !call.timed && in_use_ != 0);
  call.caller = nullptr;
  call.provider = nullptr;
  call.state = RelayedCall::State::unused;
  call.addressed = call.retried = call.asked = call.untaken = false;
  if (call.long_id) call.long_id.reset();
  if (call.stream) call.stream.reset();
  if (call.input) call.input.reset();
  if (call.extras) call.extras.reset();
  call.generation = call.generation == kGenerationMax ? 0 : call.generation + 1;
  call.of_caller.after = free_;
  free_ = slot;
  --in_use_;
}

SlotNumber RelayedCalls::find(std::string_view id_json) noexcept {
  const bool quoted = id_json.size() > 2 && id_json.front() == '"' && id_json.back() == '"';
  if (quoted) [[unlikely]]
    id_json = id_json.substr(1, id_json.size() - 2);
  const SlotNumber slot = find_number(id_json);
  return slot != kNoSlot && quoted == ((*this)[slot].input != nullptr) ? slot : kNoSlot;
}

SlotNumber RelayedCalls::find_number(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read_to, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || read_to != end) return kNoSlot;
  const auto slot = static_cast<SlotNumber>(number & ((std::uint64_t{1} << kSlotBits) - 1));
  if (slot / kBlockSlots >= blocks_.size()) return kNoSlot;
  const RelayedCall& call = (*this)[slot];
  return call.state != RelayedCall::State::unused && call.generation == number >> kSlotBits ? slot : kNoSlot;
}

void RelayedCalls::append(List& list, Links RelayedCall::* links, SlotNumber slot) noexcept {
  (*this)[slot].*links = {.before = list.last, .after = kNoSlot};
  if (list.last != kNoSlot) {
    ((*this)[list.last].*links).after = slot;
  } else {
    list.first = slot;
  }
  list.last = slot;
}

void RelayedCalls::remove(List& list, Links RelayedCall::* links, SlotNumber slot) noexcept {
  const Links at = (*this)[slot].*links;
  if (at.before != kNoSlot) {
    ((*this)[at.before].*links).after = at.after;
  } else {
    list.first = at.after;
  }
  if (at.after != kNoSlot) {
    ((*this)[at.after].*links).before = at.before;
  } else {
    list.last = at.before;
  }
}

bool RelayedCalls::is_count(const List& list, Links RelayedCall::* links, std::size_t count) noexcept {
  constexpr std::size_t kCounted = 64;
  if (count > kCounted) return true;
  std::size_t found = 0;
  for (SlotNumber slot = list.first; slot != kNoSlot && found <= count; slot = ((*this)[slot].*links).after) ++found;
  return found == count;
}

}  // namespace wirecall::broker
