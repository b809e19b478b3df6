// What the parts of the exchange share where they write messages of their own. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "base/decimal.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

/// A number as JSON text.
class Digits {
 public:
  explicit Digits(std::uint64_t number) noexcept
      : size_(static_cast<std::size_t>(write_decimal(digits_.data(), number) - digits_.data())) {}
  [[nodiscard]] std::string_view view() const noexcept { return {digits_.data(), size_}; }

 private:
  std::array<char, kDecimalDigitsMax> digits_;
  std::size_t size_;
};

/// What a request has in place of what its caller wrote, where that is not a part of either.
struct StreamEdits {
  Digits id;
  std::optional<Digits> credit = std::nullopt;
  std::string token = {};
  std::string id_and_stream = {};
};

/// Appends one message to what a peer is sent, whole or not at all.
template <class Append>
void append_message(rpc::Outlet& outlet, const Append& append) {
  Buffer& out = outlet.open_message();
  try {
    append(out);
  } catch (...) {
    outlet.discard_message();
    throw;
  }
  outlet.close_message();
}

/// Where nobody waits for what is said, or learns the same by other means.
template <class Act>
void if_memory_allows(const Act& act) noexcept {
  try {
    act();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace wirecall::broker
