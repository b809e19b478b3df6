// Why a message was answered -32700 or -32600, in a few words: for the log, and for the sender where a server explains
// its errors (docs/errors.md). Asked once a message has been refused, so it reads the text anew. Pure.
#pragma once

#include <optional>

#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// Where a text stops being a message.
struct Unreadable {
  std::size_t offset = 0;                            ///< of the byte, from the message's first
  std::optional<unsigned char> byte = std::nullopt;  ///< none where the text ends
  std::string_view cause = {};                       ///< what is wrong, where it is not that byte
};
/// The byte of `text` at `offset`; with `before`, so many bytes of the message stand before `text`.
[[nodiscard]] inline Unreadable unreadable_at(std::string_view text, std::size_t offset, std::size_t before = 0) {
  Unreadable where{.offset = before + offset};
  if (offset < text.size()) where.byte = static_cast<unsigned char>(text[offset]);
  return where;
}
[[nodiscard]] std::string why_unreadable(ScanStatus status, const Unreadable& where);

/// `message` is invalid, its text JSON with padding behind it: of one in another encoding, its envelope's.
[[nodiscard]] std::string why_invalid(const Received& message, bool in_batch);

/// Data with these members; empty for none of them. `limit` is plain ASCII.
[[nodiscard]] std::string refusal_data(std::string_view reason, std::string_view limit);

}  // namespace wirecall::message
