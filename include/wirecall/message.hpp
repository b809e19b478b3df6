// Received: one received JSON-RPC message: its text has been validated, and its members are views into it. `has` tells
// which members were there; no defaults are filled in.
// Implements docs/wire.md "Messages" (JSON-RPC 2.0 sections 4 to 6). Pure: no descriptor, clock, thread or allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"

namespace wirecall {

/// The members of an envelope. Each may occur in a message once.
enum class Member : std::uint8_t {
  jsonrpc,
  method,
  params,
  id,
  result,
  error,
  timeout_ms,
  to,
  from,
  stream,
  input,
  hops,
  traceparent,
  tracestate,
};
inline constexpr std::size_t kMemberCount = 14;
/// The member's bit in Received::present.
[[nodiscard]] constexpr std::uint32_t bit_of(Member member) noexcept {
  return std::uint32_t{1} << static_cast<unsigned>(member);
}
/// The most integers of params that are kept.
inline constexpr std::size_t kIntegersKept = 8;

enum class MessageKind : std::uint8_t {
  request,
  notification,
  response,  ///< never answered, however malformed: `fault` says whether it is well formed
  batch,     ///< `batch_size` elements, their text in `text`
  invalid,   ///< -32600; `fault` says why, `has(Member::id)` whether the id can be echoed
};

/// How a message is written, and in which encoding it is sent. Three forms: JSON; `native`, written in the encoding in
/// which it is sent; `text`, written as JSON text and transcoded when it is sent. One byte, and one bit for each test,
/// since every message is tested.
struct MessageForm {
  Encoding sent : 6 = Encoding::json;
  bool natively : 1 = false;  ///< written in `sent`, which is not JSON
  bool as_text : 1 = false;   ///< written as JSON text; `sent` is not JSON

  constexpr MessageForm() noexcept = default;  ///< JSON
  [[nodiscard]] static constexpr MessageForm native(Encoding encoding) noexcept {
    MessageForm form;
    form.sent = encoding;
    form.natively = encoding != Encoding::json;
    return form;
  }
  [[nodiscard]] static constexpr MessageForm text(Encoding encoding) noexcept {
    MessageForm form;
    form.sent = encoding;
    form.as_text = encoding != Encoding::json;
    return form;
  }
  [[nodiscard]] constexpr Encoding written() const noexcept { return natively ? sent : Encoding::json; }
  friend constexpr bool operator==(MessageForm, MessageForm) noexcept = default;
};

/// A message, or a value of one, in some encoding.
struct EncodedText {
  std::string_view text = {};  ///< empty for none
  Encoding encoding = Encoding::json;

  [[nodiscard]] bool empty() const noexcept { return text.empty(); }
};

/// Why a message is not well formed.
enum class Fault : std::uint8_t { none, invalid_request, id_limit, batch_limit };

struct Received {
  // Nothing is cleared by default: read_message sets all but the spans of members that are absent.
  Received() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would let {} clear the spans

  MessageKind kind;
  Fault fault;
  bool method_escaped;             ///< `method()` holds escapes: unescape before comparing
  Encoding encoding;               ///< of params and result; JSON from read_message
  std::uint8_t integer_count = 0;  ///< of `integers`; 0 when params have to be read from their span
  bool params_packed = false;      ///< the params are known to be one packed value, which is `packed`
  std::uint32_t present;           ///< bit_of each member that is there; only these have a span
  std::size_t batch_size;
  std::string_view text;  ///< the message itself, first to last byte
  struct Span {
    const char* data;
    std::size_t size;
  };
  std::array<Span, kMemberCount> spans;  ///< encoded values as sent
  /// The params where they are at most kIntegersKept integers from 0 to 999,999,999, with at most one blank after each
  /// bracket, comma and colon and none elsewhere: then they need no second parse. Names are as sent, without escapes,
  /// and may occur twice.
  std::array<std::uint32_t, kIntegersKept> integers;
  std::array<Span, kIntegersKept> integer_names;
  bool integers_named;
  Span packed;  ///< a packed value's bytes

  [[nodiscard]] bool has(Member member) const noexcept { return (present & bit_of(member)) != 0; }
  [[nodiscard]] std::string_view operator[](Member member) const noexcept {
    const Span& span = spans[static_cast<std::size_t>(member)];
    return {span.data, span.size};
  }
  [[nodiscard]] bool is_json() const noexcept { return encoding == Encoding::json; }
  /// The method's name between its quotes, escapes as sent.
  [[nodiscard]] std::string_view method() const noexcept {
    const std::string_view quoted = (*this)[Member::method];
    return {quoted.data() + 1, quoted.size() - 2};
  }
  /// As sent; empty for none.
  [[nodiscard]] std::string_view params() const noexcept {
    return has(Member::params) ? (*this)[Member::params] : std::string_view{};
  }
  /// The id to answer with: its bytes as sent, or null.
  [[nodiscard]] std::string_view id() const noexcept { return has(Member::id) ? (*this)[Member::id] : "null"; }
};

/// Reads the first message of `text` in one pass over its bytes: complete (the message ends at `offset`), incomplete,
/// or malformed / too_deep at `offset`. `out` is meaningful only when complete.
/// `whole`: nothing follows `text`; else a number, literal or string on top level needs white space behind it.
/// kPaddingBytes must be readable behind `text`, the first of them zero.
/// `elements`, if given, is filled with a batch's elements as far as it goes, which saves a second pass.
[[nodiscard]] Scan read_message(std::string_view text, const Limits& limits, bool whole, Received& out,
                                std::span<Received> elements = {}) noexcept;

/// The most elements that are kept from the first pass.
inline constexpr std::size_t kBatchElementsKept = 16;

/// Iterates over the elements of a batch that read_message has validated. Nested arrays are elements of kind invalid.
class BatchElements {
 public:
  /// `batch` is Received::text of a message of kind batch.
  explicit BatchElements(std::string_view batch) noexcept : at_(batch.data() + 1), end_(batch.data() + batch.size()) {}
  /// False after the last element.
  bool next(Received& out) noexcept;

 private:
  const char* at_;
  const char* end_;
};

/// Append the parts of a reply to `out`, with the members in the order jsonrpc, result or error, id.
/// A result is written between begin_result and end_reply.
void begin_result(Buffer& out);
void end_reply(Buffer& out, std::string_view id_json);
/// A whole error reply. `data_json` is JSON text, empty for none.
void write_error(Buffer& out, int code, std::string_view message, std::string_view data_json, std::string_view id_json);
void write_error(Buffer& out, const Error& error, std::string_view id_json);

namespace detail {
/// The answer to a call whose handler threw `error`. The call itself was delivered. So where `error` comes from another
/// call and says `delivered` "no", the answer must not say that, or the caller would retry its own call.
[[nodiscard]] Error as_answer(const Error& error);

}  // namespace detail

}  // namespace wirecall
