// See websocket_deflate.hpp.
#include "http/websocket_deflate.hpp"

#include <limits>
#include <utility>

#include "framing/token.hpp"

namespace wirecall::net {

using framing::same_word;

// Of an answer, for a message to people.
constexpr std::size_t kShownBytesMax = 512;
// Of which zlib is not capable.
constexpr int kWindowBitsNever = 8;
constexpr int kWindowBitsMax = 15;
constexpr std::string_view kDeflateAnswer =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

namespace {

struct Parameter {
  std::string_view name;
  std::optional<std::string> value;
};

// Reads a list of extensions, one after the other, each with its parameters. White space may stand between all tokens.
class ExtensionList {
 public:
  explicit ExtensionList(std::string_view text) noexcept : rest_(text) {}

  /// Goes to the next extension, behind all parameters of the last one; false when there is none.
  bool next_extension() {
    while (take(',')) {
    }
    if (rest_.empty() || malformed_) return false;
    name_ = take_token();
    malformed_ = name_.empty();
    return !malformed_;
  }
  /// Goes to the extension's next parameter; false when there is none.
  bool next_parameter() {
    if (!take(';')) {
      malformed_ = malformed_ || (!rest_.empty() && !take(','));
      return false;
    }
    parameter_ = {.name = take_token(), .value = {}};
    malformed_ = parameter_.name.empty();
    if (take('=')) {
      parameter_.value = take('"') ? take_quoted() : std::string{take_token()};
      malformed_ = malformed_ || parameter_.value->empty();
    }
    return !malformed_;
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const Parameter& parameter() const noexcept { return parameter_; }
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }

 private:
  void skip_space() noexcept { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  bool take(char wanted) noexcept {
    skip_space();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_token() noexcept {
    skip_space();
    std::size_t size = 0;
    while (size < rest_.size() && framing::is_token(rest_[size])) ++size;
    const std::string_view token = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return token;
  }
  // What stands in the quotes is a token, once nothing is escaped any more; empty for what is none.
  std::string take_quoted() {
    std::string value;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      if (rest_[at] == '"') {
        rest_.remove_prefix(at + 1);
        return value;
      }
      if (rest_[at] == '\\') ++at;
      if (at == rest_.size() || !framing::is_token(rest_[at])) break;
      value += rest_[at];
    }
    return {};
  }

  std::string_view rest_;
  std::string_view name_;
  Parameter parameter_;
  bool malformed_ = false;
};

// What permessage-deflate says, in an offer or an answer.
struct DeflateParameters {
  bool server_no_context_takeover = false;
  bool client_no_context_takeover = false;
  std::optional<int> server_max_window_bits;
  bool has_client_max_window_bits = false;
  std::optional<int> client_max_window_bits;  // an offer may leave the value away

  // False for one that is unknown or there twice, and for a value that it may not have.
  bool take(const Parameter& parameter) noexcept {
    const bool has_value = parameter.value.has_value();
    const std::optional<int> bits = has_value ? bits_of(*parameter.value) : std::nullopt;
    if (same_word(parameter.name, "server_no_context_takeover"))
      return !has_value && !std::exchange(server_no_context_takeover, true);
    if (same_word(parameter.name, "client_no_context_takeover"))
      return !has_value && !std::exchange(client_no_context_takeover, true);
    if (same_word(parameter.name, "server_max_window_bits"))
      return bits && !std::exchange(server_max_window_bits, bits).has_value();
    if (same_word(parameter.name, "client_max_window_bits")) {
      client_max_window_bits = bits;
      return (bits || !has_value) && !std::exchange(has_client_max_window_bits, true);
    }
    return false;
  }

 private:
  // From 8 to 15, without a zero before it; nullopt for any other text.
  [[nodiscard]] static std::optional<int> bits_of(std::string_view text) noexcept {
    if (text == "8" || text == "9") return text[0] - '0';
    if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') return 10 + text[1] - '0';
    return std::nullopt;
  }
};

}  // namespace

// Of the extension at which `list` is; nullopt for another one, and for parameters that cannot be.
static std::optional<DeflateParameters> read_deflate(ExtensionList& list) {
  bool fits = same_word(list.name(), "permessage-deflate");
  DeflateParameters read;
  while (list.next_parameter()) fits = fits && read.take(list.parameter());
  return fits ? std::optional{read} : std::nullopt;
}

std::expected<std::optional<DeflateAgreement>, std::string_view> agree_on_deflate(std::string_view offers) {
  std::optional<DeflateAgreement> agreed;
  ExtensionList list{offers};
  while (list.next_extension()) {
    const std::optional<DeflateParameters> offer = read_deflate(list);
    if (agreed || !offer || offer->server_max_window_bits == kWindowBitsNever) continue;
    agreed = DeflateAgreement{.answer = std::string{kDeflateAnswer}};
    if (!offer->server_max_window_bits) continue;
    agreed->window_bits = *offer->server_max_window_bits;
    agreed->answer.append("; server_max_window_bits=").append(std::to_string(agreed->window_bits));
  }
  if (list.malformed()) return std::unexpected{"a Sec-WebSocket-Extensions that is malformed"};
  return agreed;
}

// We keep nothing between messages: so a server has to say that it does neither (section 7.1.1.1). How large its window
// is does not matter: ours is large enough for any. That of ours has a value in an answer (section 7.1.2.2).
std::expected<std::optional<int>, std::string> takes_deflate(std::string_view answer) {
  ExtensionList list{answer};
  std::optional<int> taken;
  bool fits = true;
  while (list.next_extension()) {
    const std::optional<DeflateParameters> said = read_deflate(list);
    fits = fits && !taken && said && said->server_no_context_takeover &&
           said->has_client_max_window_bits == said->client_max_window_bits.has_value();
    taken = said ? said->client_max_window_bits.value_or(kWindowBitsMax) : kWindowBitsMax;
  }
  if (fits && !list.malformed()) return taken;
  return std::unexpected{"the server has answered the offer of compression with what cannot be: " +
                         std::string{answer.substr(0, kShownBytesMax)}};
}

framing::WebSocket::Packing client_packing(framing::MessageDeflate& deflate, int window_bits) noexcept {
  if (window_bits == kWindowBitsNever)
    return {.deflate = &deflate, .bytes_min = std::numeric_limits<std::size_t>::max()};
  return {.deflate = &deflate, .window_bits = window_bits};
}

}  // namespace wirecall::net
