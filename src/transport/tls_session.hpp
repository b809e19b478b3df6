// TlsSession: TLS as such, of one connection, as a server or as a client: ciphertext in, plaintext out, and the other
// way round. It knows no descriptor and no loop: TlsStream gives it what a stream brings, and a thread that connects
// (tls_connect.hpp) what its socket brings. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/tls_context.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/endpoint.hpp"

struct ssl_st;
struct bio_st;
struct bio_method_st;

namespace wirecall::transport {

/// What has failed, as far as that says what helps.
enum class TlsFault : std::uint8_t {
  other,      ///< what is no TLS, for instance
  alert,      ///< the peer has refused us
  authority,  ///< nobody whom we know vouches for the peer's certificate
  name,       ///< it is another host's
  validity,   ///< it has expired, or is not valid yet
  pin,        ///< it is not the one that was to be shown
};

/// How many new keys a peer may ask for: 64 at once, and one more every ten seconds. Each costs more than the bytes
/// that ask for it. A peer that follows RFC 8446 needs one in 2^24 records, or changes keys by time.
class KeyUpdateBudget {
 public:
  void spend(std::chrono::seconds now) noexcept {
    const auto period = static_cast<std::uint32_t>(now.count() / kPeriod);
    count_ -= std::min<std::uint32_t>(count_, period - period_);
    period_ = period;
    ++count_;
  }
  [[nodiscard]] bool exceeded() const noexcept { return count_ > kAtOnce; }

 private:
  static constexpr std::uint32_t kAtOnce = 64;
  static constexpr std::int64_t kPeriod = 10;

  std::uint32_t count_ = 0;
  std::uint32_t period_ = 0;
};

class TlsSession {
 public:
  enum class State : std::uint8_t {
    handshaking,
    open,
    ended,   ///< the peer has said that it sends no more; we may
    failed,  ///< `failure` says why
  };

  /// A server's, which waits for the peer's first bytes. Throws std::bad_alloc.
  explicit TlsSession(std::shared_ptr<const TlsServerContext> context);
  /// A client's of that server; `start` begins it. Throws std::bad_alloc.
  TlsSession(std::shared_ptr<const TlsClientContext> context, const Endpoint& server);
  TlsSession(TlsSession&&) = delete;
  ~TlsSession();

  /// What a client sends first. Appends to `output` what is to be sent.
  void start(Buffer& output) { static_cast<void>(receive({}, output, output)); }
  /// Appends what `ciphertext` says to `plaintext`, and what has to be sent for it to `output`: of a failure, too. What
  /// comes after the end or a failure is ignored.
  State receive(std::span<const char> ciphertext, Buffer& plaintext, Buffer& output);
  /// Appends the ciphertext of all of `plaintext` to `output`; only of an open session, or an ended one. False where it
  /// has failed, for want of memory for instance.
  [[nodiscard]] bool send(std::string_view plaintext, Buffer& output);
  /// Appends the word that nothing more is sent to `output`.
  void shut_down(Buffer& output);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// Why it has failed.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] TlsFault fault() const noexcept { return fault_; }

  // Of one whose handshake is done.

  /// "TLSv1.2" or "TLSv1.3".
  [[nodiscard]] std::string_view version() const noexcept;
  [[nodiscard]] std::string_view cipher() const noexcept;
  [[nodiscard]] bool resumed() const noexcept;
  /// The protocol that both have agreed on; empty where none was offered.
  [[nodiscard]] std::string_view protocol() const noexcept;
  /// Whether the peer has shown a certificate, which an authority vouches for.
  [[nodiscard]] bool has_certificate() const noexcept;
  /// The alternative names of the certificate, as "dns:example.com"; none without one. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> certificate_names() const;
  /// Whether the certificate, if the peer has shown one, is still one that `now` accepts.
  [[nodiscard]] bool is_accepted_by(const TlsServerContext& now) const noexcept;

 private:
  explicit TlsSession(ssl_ctx_st* context);

  static int read_ciphertext(bio_st* bio, char* to, std::size_t size, std::size_t* read) noexcept;
  static int write_ciphertext(bio_st* bio, const char* from, std::size_t size, std::size_t* written) noexcept;
  static long control(bio_st* bio, int command, long number, void* pointer) noexcept;
  static const bio_method_st* bio_method();
  static void message_seen(int sent, int version, int type, const void* bytes, std::size_t size, ssl_st* ssl,
                           void* self) noexcept;

  void shake_hands();
  [[nodiscard]] bool is_peer_acceptable();
  void read_plaintext(Buffer& plaintext);
  void fail(int result);
  void fail_with(std::string why, TlsFault fault = TlsFault::other);

  ssl_st* ssl_;
  std::shared_ptr<const TlsServerContext> server_;
  std::shared_ptr<const TlsClientContext> client_;
  std::unique_ptr<const std::string> server_name_;  // of a client
  std::string failure_;
  std::span<const char> input_;  // that has not been read, while `receive` runs
  Buffer* output_ = nullptr;     // while something of this runs that may send
  std::uint32_t handshake_bytes_ = 0;
  KeyUpdateBudget key_updates_;
  State state_ = State::handshaking;
  TlsFault fault_ = TlsFault::other;
  bool no_memory_ = false;
};

}  // namespace wirecall::transport
