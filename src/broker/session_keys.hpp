// SessionKeys: the secrets by which a client that comes back shows that it is who it was (rpc.hello `resume`). A secret
// is a number that names the connection and when it was given, and a keyed hash of that and of the principal: so none
// has to be kept, and one of another principal, or of another broker's run, is no one's. One thread. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wirecall::broker {

class SessionKeys {
 public:
  /// With a key that nobody knows.
  SessionKeys();
  /// With that key, for tests of the hash.
  explicit SessionKeys(const std::array<std::uint64_t, 4>& key) noexcept : key_(key) {}

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

}  // namespace wirecall::broker
