// TicketKeys: with what a server encrypts the sessions that it gives its clients to keep, as tickets (RFC 5077). There
// is a new key every twelve hours, and the one before it is still accepted: so a ticket can be read for a day at most,
// by nobody who comes to know the keys later. They are in memory alone. All loops of a server share one, and so do the
// contexts that follow each other when certificates are read anew. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

struct ssl_ctx_st;

namespace wirecall::transport {

struct TicketKey {
  static constexpr std::size_t kNameBytes = 16;

  TicketKey() = default;
  TicketKey(const TicketKey&) = default;
  TicketKey& operator=(const TicketKey&) = default;
  ~TicketKey();

  std::array<unsigned char, kNameBytes> name;  ///< by which a ticket says what it is encrypted with
  std::array<unsigned char, 32> cipher;        ///< of AES-256-CBC
  std::array<unsigned char, 32> mac;           ///< of HMAC-SHA-256
  std::chrono::nanoseconds made{0};            ///< by the clock
};

class TicketKeys {
 public:
  /// As long a key is the one that encrypts; it decrypts for twice that.
  static constexpr std::chrono::nanoseconds kPeriod = std::chrono::hours{12};
  using Clock = std::function<std::chrono::nanoseconds()>;

  /// A monotonic clock. Throws std::invalid_argument where the system has no random numbers.
  explicit TicketKeys(Clock clock = &TicketKeys::now);
  TicketKeys(TicketKeys&&) = delete;

  /// What encrypts now.
  [[nodiscard]] TicketKey current();
  /// What is named so; nullopt for none, or one that is too old.
  [[nodiscard]] std::optional<TicketKey> find(const unsigned char* name);

  /// The sessions of `context` are encrypted with these, which outlive it.
  void use_for(ssl_ctx_st* context);

 private:
  static std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }
  [[nodiscard]] std::chrono::nanoseconds renew();

  Clock clock_;
  std::mutex mutex_;
  TicketKey current_;
  std::optional<TicketKey> previous_;
};

}  // namespace wirecall::transport
