// WebSocket: the framing of RFC 6455, of either end of a connection. One WebSocket message is one of ours: text is
// JSON, binary another encoding (docs/wire.md "WebSocket"). Masks are undone in place. Text is checked to be UTF-8 as
// it comes, wherever it is cut. Pings and closes are answered: by whole frames that are `due`, and by the farewell.
// What breaks the protocol is `lost`, and the farewell says what it was. The handshake is no part of it
// (http/websocket.hpp). One connection each, on its thread.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "framing/framing.hpp"
#include "framing/utf8_stream.hpp"
#include "framing/websocket_mask.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {

/// Close codes (RFC 6455 section 7.4.1).
enum class WebSocketClose : std::uint16_t {
  normal = 1000,
  going_away = 1001,
  protocol_error = 1002,
  no_code = 1005,  ///< never sent: of a close frame without one
  bad_text = 1007,
  refused = 1008,
  too_large = 1009,
  failed = 1011,
};

class WebSocket final : public Framing {
 public:
  enum class Role : std::uint8_t { server, client };

  /// Compression as it was agreed on (RFC 7692): by `deflate`, which outlives the framing; null for none. Messages of
  /// ours from `bytes_min` to `bytes_max` are packed with a window of 2^`window_bits` bytes where that makes them
  /// smaller; all up to that, for a `bytes_min` of 0.
  struct Packing {
    MessageDeflate* deflate = nullptr;
    int window_bits = 15;
    std::size_t bytes_min = 128;
    std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
  };

  /// `limits` outlive the framing.
  WebSocket(Role role, const Limits& limits) : WebSocket(role, limits, Packing{}) {}
  WebSocket(Role role, const Limits& limits, Packing packing);

  [[nodiscard]] std::string_view name() const noexcept override { return "websocket"; }
  Found next(std::span<char> input) override;
  /// The codec is never asked for an end here.
  Found unfinished(std::string_view) override { return {Find::lost, 0, 0}; }
  Recovery recover(std::string_view) override { return Recovery::resume; }
  /// A connection that ends within a message has failed: nobody is answered.
  Found end_of_stream() override { return {}; }
  [[nodiscard]] bool begun() const noexcept override { return within_ || in_head(); }
  [[nodiscard]] bool in_head() const noexcept override { return head_bytes_ != 0 && (!in_payload_ || is_control()); }
  [[nodiscard]] bool carries_binary() const noexcept override { return true; }
  [[nodiscard]] std::size_t head_bytes() const noexcept override { return role_ == Role::server ? 10 : 14; }
  void seal(Buffer& out, std::size_t begin, bool json) override;
  [[nodiscard]] MessageDeflate::Outcome unpack(std::string_view packed, std::size_t bytes_max, Buffer& out) override;
  Find unpacked(MessageDeflate::Outcome outcome, std::string_view text) override;
  [[nodiscard]] std::string_view take_due() override;
  [[nodiscard]] std::string_view keepalive() override;
  [[nodiscard]] bool has_farewell() const noexcept override { return true; }
  [[nodiscard]] std::string_view farewell(Ending why) override;
  /// Why the protocol is broken, where it is.
  [[nodiscard]] std::string_view cause() const noexcept override { return cause_; }
  [[nodiscard]] std::string failure() const override;

  /// What the peer has closed the connection with; nullopt as long as it has not.
  [[nodiscard]] std::optional<WebSocketClose> peer_close() const noexcept {
    return over_ ? std::optional{code_} : std::nullopt;
  }

 private:
  static constexpr std::size_t kHeadBytesMax = 14;
  static constexpr std::size_t kControlBytesMax = 125;
  // Of a control frame of ours: two bytes, and the mask.
  static constexpr std::size_t kControlHeadMax = 6;

  [[nodiscard]] bool is_control() const noexcept { return (opcode_ & 8) != 0; }
  [[nodiscard]] static std::size_t head_size(char second) noexcept;
  [[nodiscard]] Found read_short(std::span<char> input) noexcept;
  bool begin_frame(const char* head) noexcept;
  Find finish_head(const char* head) noexcept;
  Found read_payload(std::span<char> input, std::uint32_t skip) noexcept;
  Found read_control(std::span<char> input, std::uint32_t skip) noexcept;
  Find control_complete() noexcept;
  bool read_close() noexcept;
  bool fail(WebSocketClose code, std::string_view cause) noexcept;
  [[nodiscard]] std::string_view control_frame(std::uint8_t opcode, std::size_t bytes);

  bool pack(Buffer& out, std::size_t begin);

  const Limits* limits_;
  const Packing packing_;
  std::unique_ptr<WebSocketMasks> masks_;         // of a client; else null
  std::uint64_t left_ = 0;                        // bytes of the frame's payload that have not come
  std::size_t message_bytes_ = 0;                 // of the message, those of this frame that have not come included
  std::uint32_t mask_ = 0;                        // of the frame, the byte for the next one lowest in memory
  WebSocketClose code_ = WebSocketClose::normal;  // of the farewell
  Role role_;
  std::uint8_t head_bytes_ = 0;     // of the frame's head that have come; not 0 until the frame has ended
  std::uint8_t opcode_ = 0;         // of the frame
  std::uint8_t control_bytes_ = 0;  // of the control frame's payload, that have come
  bool in_payload_ : 1 = false;     // the head has come
  bool final_ : 1 = false;          // the frame ends its message
  bool within_ : 1 = false;         // a message has begun and not ended
  bool text_ : 1 = false;           // and it is text
  bool packed_ : 1 = false;         // and compressed
  bool over_ : 1 = false;           // the peer has closed
  bool broken_ : 1 = false;         // it has broken the protocol
  bool parted_ : 1 = false;         // the farewell has been had
  Utf8Stream utf8_;                 // of a message of text
  std::string_view cause_;          // of a farewell, for people
  std::unique_ptr<const std::string> peer_reason_;  // what the peer has said in its close; null for nothing
  std::array<char, kHeadBytesMax> head_{};
  // Of a control frame, the peer's and then ours; its payload stands behind the room for its head.
  std::array<char, kControlHeadMax + kControlBytesMax> control_{};
};

}  // namespace wirecall::framing
