// The negotiation of permessage-deflate by Sec-WebSocket-Extensions, of both ends: what a server answers to offers, and
// what a client takes of the answer (RFC 7692 section 7; the grammar is that of RFC 6455 section 9.1). Neither end
// keeps anything between messages. Compression itself is zlib_deflate.hpp.
// Pure functions.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "framing/websocket.hpp"

namespace wirecall::net {

/// What a client offers: it keeps to any window that the server asks for.
inline constexpr std::string_view kDeflateOffer =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits";

/// How messages are compressed: what of the offers is taken.
struct DeflateAgreement {
  int window_bits = 15;  ///< of what we send, from 9 to 15
  std::string answer;    ///< the field's value
};
/// The first of the offers that can be taken; nullopt where none can. `offers` is the field's value, of all its lines.
/// The error says, for people, why the request must fail: the field is malformed.
[[nodiscard]] std::expected<std::optional<DeflateAgreement>, std::string_view> agree_on_deflate(
    std::string_view offers);

/// The window of what a client sends, from 8 to 15 bits, where `answer`, the field's value, takes up kDeflateOffer;
/// nullopt for an empty one. The error says, for people, why the connection must fail: the field is malformed, or says
/// what was not offered or cannot be.
[[nodiscard]] std::expected<std::optional<int>, std::string> takes_deflate(std::string_view answer);
/// How a client packs with that window: not at all with one that zlib is not capable of. `deflate` outlives what packs.
[[nodiscard]] framing::WebSocket::Packing client_packing(framing::MessageDeflate& deflate, int window_bits) noexcept;

}  // namespace wirecall::net
