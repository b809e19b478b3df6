// See websocket.hpp.
#include "http/websocket.hpp"

#include <algorithm>

#include "base/sha1.hpp"
#include "codec/base64.hpp"
#include "connection/message_connection.hpp"
#include "framing/token.hpp"
#include "framing/websocket.hpp"
#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "http/websocket_deflate.hpp"
#include "message/message_codec.hpp"

namespace wirecall::net {

using framing::HttpHead;

constexpr std::string_view kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::string_view kBearer = "bearer.";
constexpr std::string_view kOurs = "jsonrpc";
// A loop compresses so much in some milliseconds.
constexpr std::size_t kPackedReplyBytesMax = std::size_t{1} << 20;

std::string join_field(const framing::HttpFields& head, std::string_view name) {
  std::string all;
  std::string_view block = head.block;
  while (const std::optional<std::string_view> value = framing::find_field(block, name)) {
    if (!all.empty()) all += ", ";
    all += *value;
    block.remove_prefix(static_cast<std::size_t>(value->data() + value->size() - block.data()));
  }
  return all;
}

std::string websocket_accept(std::string_view key) {
  const std::array<std::byte, 20> hash = sha1(std::string{key}.append(kMagic));
  std::string accept(codec::base64_size(hash.size()), '\0');
  codec::base64_encode(hash, accept.data());
  return accept;
}

// ---- subprotocols ----

std::string subprotocol_of(Encoding encoding) {
  std::string name{kOurs};
  if (encoding != Encoding::json) name.append(".").append(message::codec_of(encoding).name);
  return name;
}

// "jsonrpc" is JSON, "jsonrpc." and the name of an encoding that; nullopt for others.
static std::optional<Encoding> encoding_of_subprotocol(std::string_view name) noexcept {
  if (name == kOurs) return Encoding::json;
  if (!name.starts_with(kOurs) || name.size() == kOurs.size() || name[kOurs.size()] != '.') return std::nullopt;
  const std::string_view wanted = name.substr(kOurs.size() + 1);
  for (const Encoding encoding : {Encoding::msgpack, Encoding::cbor, Encoding::protobuf}) {
    if (wanted == message::codec_of(encoding).name) return encoding;
  }
  return std::nullopt;
}

// As RFC 4648 section 5 has it, with or without the padding; nullopt for what is not.
static std::optional<std::string> decode_base64url(std::string_view text) {
  std::string standard{text};
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  std::string bytes(standard.size(), '\0');
  const std::size_t size = codec::base64_decode(standard, reinterpret_cast<std::byte*>(bytes.data()));
  if (size == codec::kNotBase64 || text.find_first_of("+/") != text.npos) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

std::expected<WebSocketOffer, std::string_view> choose_subprotocol(std::string_view offered) {
  WebSocketOffer offer;
  bool ours = false;
  bool any = false;
  while (!offered.empty()) {
    const std::string_view name = framing::take_element(offered);
    if (name.empty()) continue;
    if (!std::ranges::all_of(name, framing::is_token)) return std::unexpected{"a subprotocol that is no token"};
    any = true;
    if (name.starts_with(kBearer)) {
      if (!offer.token.empty()) return std::unexpected{"more than one token among the subprotocols"};
      std::optional<std::string> token = decode_base64url(name.substr(kBearer.size()));
      if (!token || token->empty())
        return std::unexpected{"a subprotocol bearer. that is not followed by a token in base64url"};
      offer.token = std::move(*token);
      continue;
    }
    const std::optional<Encoding> encoding = encoding_of_subprotocol(name);
    if (ours || (!encoding && !offer.chosen.empty())) continue;
    ours = encoding.has_value();
    offer.chosen = name;
    offer.encoding = encoding.value_or(Encoding::json);
  }
  if (any && offer.chosen.empty())
    return std::unexpected{"a token alone among the subprotocols: offer jsonrpc beside it, since it is never chosen"};
  return offer;
}

// ---- the handshake ----

// What looks like a token or a hello there would stand in logs, on the way and in browsers.
static bool has_secret(std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::string name = decode_percent(pair.substr(0, pair.find('='))).value_or(std::string{});
    for (const std::string_view secret : {"hello", "token", "access_token"})
      if (std::ranges::equal(name, secret, {}, framing::lower)) return true;
  }
  return false;
}

static bool is_key(std::string_view key) {
  constexpr std::size_t kText = codec::base64_size(kWebSocketKeyBytes);
  std::array<std::byte, kText> bytes{};
  return key.size() == kText && codec::base64_decode(key, bytes.data()) == kWebSocketKeyBytes;
}

void require_websocket(HttpConnection& connection, const RoutedRequest&) {
  connection.current().fields += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  connection.current().refuse(426, "this is a WebSocket of version 13");
}

// The error is for people, of a request that is refused with 400.
static std::string_view fault_of(const RoutedRequest& request, const std::string& key) {
  if (request.head.version_1_0) return "a WebSocket needs HTTP/1.1";
  if (!is_key(key)) return "a Sec-WebSocket-Key that is not 16 bytes in base64, or not the only one";
  if (has_secret(request.query))
    return "a token does not belong in the address: show it by Authorization, by the subprotocol bearer., or by "
           "rpc.hello";
  return {};
}

// Whether the tokens, either of which may be empty, are of principals that are known; of one, where there are two.
static bool are_known(const HttpConnection& connection, std::string_view token, std::string_view offered) {
  if (connection.host().loop_context.services.authority == nullptr) return true;
  const Principal* const known = token.empty() ? nullptr : connection.find(rpc::Credential{token});
  const Principal* const other = offered.empty() ? nullptr : connection.find(rpc::Credential{offered});
  if ((!token.empty() && known == nullptr) || (!offered.empty() && other == nullptr)) return false;
  return known == nullptr || other == nullptr || rpc::same_principal(known, other);
}

void begin_websocket(HttpConnection& connection, const RoutedRequest& request) {
  const HttpHead& head = request.head;
  HttpTransaction& transaction = connection.current();
  if (head.method != framing::HttpMethod::get) {
    transaction.fields += "Allow: GET\r\n";
    return transaction.refuse(405, "a WebSocket is asked for by GET");
  }
  if (join_field(head, "sec-websocket-version") != "13") return require_websocket(connection, request);
  const std::string key = join_field(head, "sec-websocket-key");
  if (const std::string_view fault = fault_of(request, key); !fault.empty()) return transaction.refuse(400, fault);
  std::expected<WebSocketOffer, std::string_view> offer =
      choose_subprotocol(join_field(head, "sec-websocket-protocol"));
  if (!offer) return transaction.refuse(400, offer.error());
  std::expected<std::optional<DeflateAgreement>, std::string_view> deflate =
      agree_on_deflate(join_field(head, "sec-websocket-extensions"));
  if (!deflate) return transaction.refuse(400, deflate.error());

  if (!are_known(connection, bearer_token(head), offer->token)) return connection.refuse_unknown(request, true);
  const bool by_offer = bearer_token(head).empty() && !offer->token.empty();
  rpc::Credential shown = by_offer ? rpc::Credential{offer->token} : connection.credential_of(head);

  if (!connection.may_upgrade()) return;
  transaction.fields.append("Sec-WebSocket-Accept: ").append(websocket_accept(key)).append("\r\n");
  if (!offer->chosen.empty())
    transaction.fields.append("Sec-WebSocket-Protocol: ").append(offer->chosen).append("\r\n");
  int window_bits = 0;
  if (connection.host().deflate != nullptr && deflate->has_value()) {
    window_bits = (*deflate)->window_bits;
    transaction.fields.append("Sec-WebSocket-Extensions: ").append((*deflate)->answer).append("\r\n");
  }
  connection.upgrade("websocket", [shown = std::move(shown), encoding = offer->encoding, window_bits](
                                      Host& host, std::unique_ptr<transport::ByteStream> stream) {
    using framing::WebSocket;
    WebSocket::Packing packing;
    if (window_bits != 0)
      packing = {.deflate = host.deflate, .window_bits = window_bits, .bytes_max = kPackedReplyBytesMax};
    auto made = std::make_unique<MessageConnection>(
        host, std::move(stream), std::make_unique<WebSocket>(WebSocket::Role::server, host.limits, packing));
    // Looked for once more: the principals may have been reloaded since.
    ++host.loop_context.stats.protocol_websocket;
    made->identify(shown);
    made->speak(encoding);
    return made;
  });
}

}  // namespace wirecall::net
