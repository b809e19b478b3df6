// See websocket.hpp. The path that matters: `next` of a frame that has come whole, and is a message.
#include "framing/websocket.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace wirecall::framing {
namespace {

enum Opcode : std::uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

constexpr std::uint8_t kFinal = 0x80;
constexpr std::uint8_t kReserved = 0x70;
constexpr std::uint8_t kPacked = 0x40;  // of the reserved bits, where compression is agreed on
constexpr std::uint8_t kMasked = 0x80;
// Instead of a length: two bytes of it follow, or eight.
constexpr std::uint8_t kTwoBytes = 126;
constexpr std::uint8_t kEightBytes = 127;
constexpr std::size_t kMaskBytes = 4;
constexpr std::uint32_t kShortHead = 2 + kMaskBytes;  // of a client's frame with at most 125 bytes

constexpr std::string_view kNotUtf8 = "text that is not UTF-8";
constexpr std::string_view kCutUtf8 = "text that ends within a character";
constexpr std::string_view kTooLarge = "the message is larger than allowed";

std::uint8_t byte(char c) noexcept { return static_cast<std::uint8_t>(c); }

std::uint64_t number(const char* p, std::size_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | byte(p[i]);
  return value;
}

void put_number(char* p, std::uint64_t value, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) p[i] = static_cast<char>(value >> 8 * (bytes - 1 - i));
}

// Codes that may be sent (RFC 6455 section 7.4.2, and what has been registered since).
bool may_be_sent(unsigned code) noexcept {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

WebSocketClose code_of(Ending why) noexcept {
  switch (why) {
    case Ending::done: return WebSocketClose::normal;
    case Ending::going_away: return WebSocketClose::going_away;
    case Ending::refused: return WebSocketClose::refused;
    case Ending::too_large: return WebSocketClose::too_large;
    case Ending::unreadable: return WebSocketClose::protocol_error;
    case Ending::failed: break;
  }
  return WebSocketClose::failed;
}

}  // namespace

WebSocket::WebSocket(Role role, const Limits& limits, Packing packing)
    : limits_(&limits),
      packing_(packing),
      masks_(role == Role::client ? std::make_unique<WebSocketMasks>() : nullptr),
      role_(role) {}

// ---- what comes ----

Found WebSocket::next(std::span<char> input) {
  if (head_bytes_ == 0 && !within_ && masks_ == nullptr && input.size() >= kShortHead) [[likely]] {
    const Found found = read_short(input);
    if (found.find != Find::nothing) return found;
  }
  std::uint32_t skip = 0;
  if (!in_payload_) {
    const char* head = nullptr;
    if (head_bytes_ == 0 && input.size() >= 2 && input.size() >= head_size(input[1])) [[likely]] {
      head = input.data();
      if (!begin_frame(head)) return {Find::lost, 0, 0};
      skip = head_bytes_ = static_cast<std::uint8_t>(head_size(input[1]));
    } else {
      while (head_bytes_ < 2 || head_bytes_ < head_size(head_[1])) {
        if (skip == input.size()) return {Find::nothing, skip, 0};
        head_[head_bytes_++] = input[skip++];
        if (head_bytes_ == 2 && !begin_frame(head_.data())) return {Find::lost, skip, 0};
      }
      head = head_.data();
    }
    if (const Find bad = finish_head(head); bad != Find::nothing) return {bad, skip, 0};
    if (skip == input.size() && left_ != 0) return {Find::nothing, skip, 0};
  }
  return is_control() ? read_control(input, skip) : read_payload(input, skip);
}

// The way of nearly all messages to a server: one frame of at most 125 bytes that has come whole, and is not
// compressed. `nothing` for all else, and nothing has been done.
Found WebSocket::read_short(std::span<char> input) noexcept {
  const std::uint8_t first = byte(input[0]);
  const std::size_t length = byte(input[1]) - kMasked;  // of a frame with a mask; else far more
  const bool text = first == (kFinal | kText);
  if (!text && first != (kFinal | kBinary)) return {};
  if (length > kControlBytesMax || length > input.size() - kShortHead || length > limits_->max_message_size) return {};
  std::uint32_t mask;
  std::memcpy(&mask, input.data() + 2, sizeof mask);
  char* const payload = input.data() + kShortHead;
  const bool ascii = apply_mask({payload, length}, mask);
  if (text && !ascii) {
    utf8_.reset();
    const bool utf8 = utf8_.feed(payload, payload + length);
    if (!utf8 || !utf8_.between_characters()) [[unlikely]] {
      static_cast<void>(fail(WebSocketClose::bad_text, utf8 ? kCutUtf8 : kNotUtf8));
      return {Find::lost, kShortHead, 0};
    }
  }
  return {text ? Find::text : Find::message, kShortHead, length};
}

// Bytes of a head with that second byte.
std::size_t WebSocket::head_size(char second) noexcept {
  const std::uint8_t length = byte(second) & 0x7F;
  const std::size_t more = length < kTwoBytes ? 0 : length == kTwoBytes ? 2 : 8;
  return 2 + more + ((byte(second) & kMasked) != 0 ? kMaskBytes : 0);
}

// Two bytes of the head have come. False when no frame can begin with them here.
bool WebSocket::begin_frame(const char* head) noexcept {
  const std::uint8_t first = byte(head[0]);
  final_ = (first & kFinal) != 0;
  opcode_ = first & 0x0F;
  const auto broken = [this](std::string_view cause) { return fail(WebSocketClose::protocol_error, cause); };
  const bool packed = packing_.deflate != nullptr && (opcode_ == kText || opcode_ == kBinary);
  if ((first & kReserved & ~(packed ? kPacked : 0)) != 0)
    return broken("a reserved bit is set, for an extension that was not agreed on");
  if (((byte(head[1]) & kMasked) != 0) != (role_ == Role::server))
    return broken(role_ == Role::server ? "a frame of a client without a mask" : "a frame of a server with a mask");
  switch (opcode_) {
    case kText:
    case kBinary:
      if (within_) return broken("a message begins within another");
      packed_ = (first & kPacked) != 0;
      break;
    case kContinuation:
      if (!within_) return broken("a continuation without a message");
      break;
    case kClose:
    case kPing:
    case kPong:
      if (!final_) return broken("a control frame in fragments");
      if ((byte(head[1]) & 0x7F) > kControlBytesMax) return broken("a control frame of more than 125 bytes");
      break;
    default: return broken("an opcode that is none");
  }
  return true;
}

// The head has come. Anything but `nothing` is what the frame is refused with.
Find WebSocket::finish_head(const char* head) noexcept {
  left_ = byte(head[1]) & 0x7F;
  std::size_t at = 2;
  if (left_ >= kTwoBytes) [[unlikely]] {
    const std::size_t bytes = left_ == kTwoBytes ? 2 : 8;
    left_ = number(head + at, bytes);
    at += bytes;
    const std::uint64_t least = bytes == 2 ? kTwoBytes : 0x10000;
    const bool shortest = left_ >= least;
    if (!shortest || (left_ >> 63) != 0) {
      static_cast<void>(fail(WebSocketClose::protocol_error,
                             shortest ? "a length of 2^63 or more" : "a length that is not in its shortest form"));
      return Find::lost;
    }
  }
  if (role_ == Role::server) std::memcpy(&mask_, head + at, sizeof mask_);
  in_payload_ = true;
  if (is_control()) {
    control_bytes_ = 0;
    return Find::nothing;
  }
  if (opcode_ != kContinuation) {
    within_ = true;
    text_ = opcode_ == kText;
    message_bytes_ = 0;
    utf8_.reset();
  }
  if (left_ > limits_->max_message_size || message_bytes_ + left_ > limits_->max_message_size) {
    static_cast<void>(fail(WebSocketClose::too_large, kTooLarge));
    return Find::too_large;
  }
  message_bytes_ += left_;
  return Find::nothing;
}

// Of a data frame, from `skip` on.
Found WebSocket::read_payload(std::span<char> input, std::uint32_t skip) noexcept {
  const std::span<char> payload = input.subspan(skip, std::min<std::size_t>(input.size() - skip, left_));
  const bool ascii = apply_mask(payload, mask_);
  if (text_ && !packed_ && !(ascii && utf8_.between_characters()) &&
      !utf8_.feed(payload.data(), payload.data() + payload.size())) [[unlikely]] {
    static_cast<void>(fail(WebSocketClose::bad_text, kNotUtf8));
    return {Find::lost, skip, 0};
  }
  left_ -= payload.size();
  if (left_ != 0) {
    mask_ = mask_behind(mask_, payload.size());
    return {Find::part, skip, payload.size()};
  }
  head_bytes_ = 0;
  in_payload_ = false;
  if (!final_) return {payload.empty() ? Find::nothing : Find::part, skip, payload.size()};
  within_ = false;
  if (packed_) [[unlikely]]
    return {Find::packed, skip, payload.size()};
  if (!text_) return {Find::message, skip, payload.size()};
  if (!utf8_.between_characters()) {
    static_cast<void>(fail(WebSocketClose::bad_text, kCutUtf8));
    return {Find::lost, skip, 0};
  }
  return {Find::text, skip, payload.size()};
}

MessageDeflate::Outcome WebSocket::unpack(std::string_view packed, std::size_t bytes_max, Buffer& out) {
  return packing_.deflate->inflate(packed, bytes_max, out);
}

Find WebSocket::unpacked(MessageDeflate::Outcome outcome, std::string_view text) {
  using Outcome = MessageDeflate::Outcome;
  if (outcome == Outcome::too_large) {
    static_cast<void>(fail(WebSocketClose::too_large, kTooLarge));
    return Find::too_large;
  }
  if (outcome == Outcome::malformed) {
    static_cast<void>(fail(WebSocketClose::bad_text, "a message that cannot be unpacked"));
    return Find::lost;
  }
  const char* const end = text.data() + text.size();
  if (text_ && find_no_utf8(text.data(), end) != end) {
    static_cast<void>(fail(WebSocketClose::bad_text, kNotUtf8));
    return Find::lost;
  }
  return text_ ? Find::text : Find::message;
}

Found WebSocket::read_control(std::span<char> input, std::uint32_t skip) noexcept {
  const std::span<char> here = input.subspan(skip, std::min<std::size_t>(input.size() - skip, left_));
  apply_mask(here, mask_);
  mask_ = mask_behind(mask_, here.size());
  std::ranges::copy(here, control_.begin() + static_cast<std::ptrdiff_t>(kControlHeadMax + control_bytes_));
  control_bytes_ = static_cast<std::uint8_t>(control_bytes_ + here.size());
  left_ -= here.size();
  skip += static_cast<std::uint32_t>(here.size());
  if (left_ != 0) return {Find::nothing, skip, 0};
  head_bytes_ = 0;
  in_payload_ = false;
  return {control_complete(), skip, 0};
}

Find WebSocket::control_complete() noexcept {
  if (opcode_ == kPing) return Find::due;
  if (opcode_ == kPong) return Find::nothing;
  if (!read_close()) return Find::lost;
  over_ = true;
  return Find::over;
}

// False when it is none.
bool WebSocket::read_close() noexcept {
  code_ = WebSocketClose::no_code;
  if (control_bytes_ == 0) return true;
  const char* const payload = control_.data() + kControlHeadMax;
  if (control_bytes_ == 1) return fail(WebSocketClose::protocol_error, "half of a close code");
  const auto code = static_cast<std::uint16_t>(number(payload, 2));
  if (!may_be_sent(code)) return fail(WebSocketClose::protocol_error, "a close code that may not be sent");
  const char* const end = payload + control_bytes_;
  if (find_no_utf8(payload + 2, end) != end) return fail(WebSocketClose::bad_text, "a close reason that is not UTF-8");
  code_ = static_cast<WebSocketClose>(code);
  try {
    if (payload + 2 != end) peer_reason_ = std::make_unique<const std::string>(payload + 2, end);
  } catch (const std::bad_alloc&) {
    // Then nobody is told.
  }
  return true;
}

// An end in order is no failure.
std::string WebSocket::failure() const {
  const std::string peer = role_ == Role::client ? "the server" : "the client";
  if (broken_) return peer + " broke the rules of WebSocket: " + std::string{cause_};
  const bool in_order = code_ == WebSocketClose::normal || code_ == WebSocketClose::no_code;
  if (!over_ || (in_order && peer_reason_ == nullptr)) return {};
  std::string text = peer + " closed the WebSocket with code " + std::to_string(static_cast<int>(code_));
  if (peer_reason_ != nullptr) {
    text += ": ";
    for (const char c : *peer_reason_) text.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return text;
}

bool WebSocket::fail(WebSocketClose code, std::string_view cause) noexcept {
  broken_ = true;
  code_ = code;
  cause_ = cause;
  return false;
}

// ---- what goes ----

// The head-room is for the longest length, and the message moves down to the shortest form of the one that it has. One
// of more than 64 KiB stays where it is.
void WebSocket::seal(Buffer& out, std::size_t begin, bool json) {
  WIRECALL_ASSERT(begin + head_bytes() <= out.size());
  if (parted_) [[unlikely]]
    return out.truncate(begin);
  const bool packed = packing_.deflate != nullptr && pack(out, begin);
  char* const frame = out.data() + begin;
  const std::size_t bytes = out.size() - begin - head_bytes();
  frame[0] = static_cast<char>(kFinal | (packed ? kPacked : 0) | (json ? kText : kBinary));
  const std::uint8_t masked = masks_ ? kMasked : 0;
  std::size_t head = 2;
  if (bytes <= kControlBytesMax) {
    frame[1] = static_cast<char>(masked | bytes);
  } else {
    const std::size_t more = bytes <= 0xFFFF ? 2 : 8;
    frame[1] = static_cast<char>(masked | (more == 2 ? kTwoBytes : kEightBytes));
    put_number(frame + head, bytes, more);
    head += more;
  }
  std::uint32_t mask = 0;
  if (masks_) {
    mask = masks_->next();
    std::memcpy(frame + head, &mask, sizeof mask);
    head += sizeof mask;
  }
  if (head != head_bytes()) {
    std::memmove(frame + head, frame + head_bytes(), bytes);
    out.set_end(frame + head + bytes);
  }
  if (masks_) apply_mask({frame + head, bytes}, mask);
}

// Whether the message is packed then.
bool WebSocket::pack(Buffer& out, std::size_t begin) {
  const std::string_view message = out.view().substr(begin + head_bytes());
  if (message.size() < packing_.bytes_min || message.size() > packing_.bytes_max) return false;
  Buffer packed;
  packing_.deflate->deflate(message, packing_.window_bits, packed);
  if (packed.size() >= message.size() && packing_.bytes_min != 0) return false;
  out.truncate(begin + head_bytes());
  out.append(packed.view());
  return true;
}

// Its payload of so many bytes stands in its place.
std::string_view WebSocket::control_frame(std::uint8_t opcode, std::size_t bytes) {
  char* const payload = control_.data() + kControlHeadMax;
  char* const frame = payload - (masks_ ? 6 : 2);
  frame[0] = static_cast<char>(kFinal | opcode);
  frame[1] = static_cast<char>((masks_ ? kMasked : 0) | bytes);
  if (masks_) {
    const std::uint32_t mask = masks_->next();
    std::memcpy(frame + 2, &mask, sizeof mask);
    apply_mask({payload, bytes}, mask);
  }
  return {frame, static_cast<std::size_t>(payload - frame) + bytes};
}

// The payload of the ping that has just come stands there yet.
std::string_view WebSocket::take_due() {
  if (parted_) return {};
  return control_frame(kPong, control_bytes_);
}

std::string_view WebSocket::keepalive() {
  // A control frame of the peer's that has come in part stands in the place of ours: then something is coming.
  if (parted_ || (in_payload_ && is_control())) return {};
  return control_frame(kPing, 0);
}

std::string_view WebSocket::farewell(Ending why) {
  if (parted_) return {};
  parted_ = true;
  if (!over_ && !broken_) code_ = code_of(why);
  if (code_ == WebSocketClose::no_code) return control_frame(kClose, 0);
  char* const payload = control_.data() + kControlHeadMax;
  put_number(payload, static_cast<std::uint16_t>(code_), 2);
  const std::string_view cause = cause_.substr(0, kControlBytesMax - 2);
  std::ranges::copy(cause, payload + 2);
  return control_frame(kClose, 2 + cause.size());
}

}  // namespace wirecall::framing
