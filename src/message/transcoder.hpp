// Transcoder: JSON-RPC messages from MessagePack to JSON and back, for the edge at which a peer speaks MessagePack:
// what is inside knows JSON envelopes alone. Params and results stay MessagePack where whoever reads them can read that
// (read), and become JSON with the rest elsewhere (to_json). It walks the envelope member by member, so that a
// value which the other encoding has no form for costs the call that it belongs to, and no other (docs/wire.md,
// "MessagePack"):
//
//   in params           the request is to be answered -32602, a notification is dropped
//   in result, error    the response becomes the error -32603 for its id
//   in another member   one that JSON-RPC names becomes false, which is refused as any wrong type; others are left out
//   in an item          the stream that it is of ends with the error -32603, and whoever sends it is told to stop
//
// It decides nothing else about a message: what is a request, and what is malformed, says who reads the JSON. Values
// are transcoded by codec/transcode.hpp; params by name are members, not user data, so nothing is wrapped there.
// It keeps its memory from message to message. One owner, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/json_reader.hpp"
#include "codec/json_writer.hpp"
#include "codec/transcode.hpp"
#include "message/msgpack_walk.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// Whether a message whose first byte this is, is one of MessagePack: an array or a map. No JSON text begins so.
[[nodiscard]] constexpr bool is_msgpack(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return (byte & 0xE0) == 0x80 || (byte >= 0xDC && byte <= 0xDF);
}

/// A request or notification whose params have no form in JSON; in the text they are null.
struct Unrepresentable {
  std::size_t offset;    ///< of its first byte in the text
  std::string_view why;  ///< a constant
};

/// A call whose stream has an item that could not be sent: its response is still to come, and will say so.
struct Broken {
  std::string id;        ///< as JSON
  std::string_view why;  ///< a constant
};

/// What a request is answered with whose params have no form in JSON, for that reason; or are too large in it.
[[nodiscard]] Error unrepresentable_params(std::string_view why);
/// The same of a result or an item.
[[nodiscard]] Error unrepresentable_result(std::string_view why);
[[nodiscard]] Error too_large_as_json();

class Transcoder {
 public:
  enum class Status : std::uint8_t {
    done,
    malformed,  ///< no MessagePack, or something follows it
    too_deep,
    too_large,  ///< as JSON it has more than twice Limits::max_message_size
  };

  /// What JSON may be larger than Limits::max_message_size: base64 by a third, numbers and escapes by more.
  static constexpr std::size_t kGrowth = 2;

  /// In a few words, of the two that refuse a message as text that is none is refused.
  [[nodiscard]] static constexpr std::string_view cause_of(Status status) noexcept {
    return status == Status::too_deep ? "MessagePack that nests deeper than allowed"
                                      : "no MessagePack, or something follows it";
  }

  /// Whether that is one whole message of MessagePack.
  [[nodiscard]] static Status check(std::string_view message, const Limits& limits) noexcept;
  /// The same, with what there is in a single envelope, for those below that would look for it again.
  [[nodiscard]] static Status check(std::string_view message, const Limits& limits, MsgpackMembers& members) noexcept;
  /// Appends the JSON of one whole message to `out`; only when it is done, all of what has been appended means
  /// something.
  Status to_json(std::string_view message, const Limits& limits, Buffer& out);
  /// The same of one that has been checked.
  Status checked_to_json(std::string_view message, const Limits& limits, Buffer& out);
  /// Whether a message that has been checked is a batch of more than Limits::batch elements.
  [[nodiscard]] static bool is_long_batch(std::string_view message, const Limits& limits) noexcept;
  /// Reads one that is into `received`, whose fault is batch_limit. None of its requests is run, so its text, which is
  /// in `text`, has only what the refusal needs: each id that somebody waits by, until those are larger than the
  /// refusal may be, and whether there is anything but responses. With `responses` it has these, too, as they are.
  Status read_long_batch(std::string_view batch, const Limits& limits, bool responses, Buffer& text,
                         Received& received);
  /// Reads one that has been checked into `received`, and `elements` if it is a batch, by way of its envelope as JSON
  /// in `text`, which has only members that somebody asks for. Params and results are not in there, but the places that
  /// they have in the message: `restore` makes them views of that. `members` are what `check` has found in it.
  Status read(std::string_view message, const Limits& limits, Buffer& text, Received& received,
              std::span<Received> elements = {}, const MsgpackMembers& members = {});
  /// For what `read` has read: a single message, or one element of a batch.
  static void restore(std::string_view message, Received& received) noexcept;
  /// Has `json` hold as JSON what has been restored, the params or the result. Empty, or the reason why they have no
  /// form in that, or are too large; then they are null.
  [[nodiscard]] std::string_view unpack(Received& restored, const Limits& limits, Buffer& json);
  /// The name of the method in one envelope that has been checked; empty where there is none.
  [[nodiscard]] static std::string_view method_of(std::string_view envelope) noexcept;
  [[nodiscard]] static std::string_view method_of(std::string_view envelope, const MsgpackMembers& members) noexcept;
  /// Whether a message that has been checked is no batch.
  [[nodiscard]] static bool is_single(std::string_view message) noexcept;
  /// Of a batch that has been checked: what is in front of its elements, in bytes; and the element that begins at that
  /// offset.
  [[nodiscard]] static std::size_t elements_offset(std::string_view batch) noexcept;
  [[nodiscard]] static std::string_view element_at(std::string_view batch, std::size_t offset) noexcept;
  /// Whether in a message that has been checked there is a response, or what is nothing at all: an envelope without a
  /// method.
  [[nodiscard]] static bool has_response(std::string_view message) noexcept;
  [[nodiscard]] static bool has_response(std::string_view message, const MsgpackMembers& members) noexcept;
  /// Of the last message. Taken away, since its handlers may outlive the next.
  [[nodiscard]] std::vector<Unrepresentable> take_unrepresentable() noexcept {
    return std::exchange(unrepresentable_, {});
  }

  /// Of the last message: what the peer is to be told, since it sends items in vain; as JSON.
  [[nodiscard]] std::vector<std::string> take_cancels() noexcept { return std::exchange(cancels_, {}); }

  /// Appends the MessagePack of one message of ours to `out`. `json` has been validated, and has padding behind it.
  /// `broken` are the calls of this connection that have such streams; null where there are none. False when nothing is
  /// left to be sent.
  bool to_msgpack(std::string_view json, const Limits& limits, Buffer& out, std::vector<Broken>* broken = nullptr);
  /// Appends one JSON value, valid and with padding behind it. False where it has no form; nothing is appended then.
  bool append_value(std::string_view json, Buffer& out);
  /// The same for a whole response with that error.
  void append_error(const Error& error, std::string_view id, Buffer& out) { write_error_response(error, id, out); }
  /// Of the last message, as JSON: for each request that could not be sent the response by which it is refused, and for
  /// a stream that has broken the cancelling of its call.
  [[nodiscard]] std::vector<std::string> take_refusals() noexcept { return std::exchange(refusals_, {}); }

  /// Scratch memory for whoever writes in place; empty between uses.
  Buffer& scratch() noexcept { return scratch_; }
  /// Gives back what one large message needed.
  void shrink() noexcept;

 private:
  struct Named {
    std::string_view name;
    std::string_view value;
  };

  // To JSON, what has been checked. False: it becomes too large.
  Status convert(std::string_view message, const Limits& limits, Buffer& out);
  void begin_envelope(Buffer& out);
  const char* envelope(const char* p, Buffer& out);
  bool envelope(const MsgpackMembers& members, Buffer& out);
  bool end_envelope(std::string_view params, Buffer& out);
  bool member(std::string_view name, std::string_view value, Buffer& out);
  bool element(std::string_view value, Buffer& out);
  std::size_t write_refusable(std::string_view id, Buffer& out);
  bool keep(std::string_view name, std::string_view value, Buffer& out);
  void break_stream(std::string_view params, Buffer& out);
  [[nodiscard]] std::size_t bytes_left(const Buffer& out) const noexcept;
  [[nodiscard]] bool fits(const Buffer& out) const noexcept { return out.size() - start_ <= bytes_max_; }
  void begin_member(std::string_view name, Buffer& out);

  // To MessagePack. False: nothing of it is left.
  bool envelope(std::string_view json, Buffer& out);
  void read_members(std::string_view json);
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
  [[nodiscard]] bool is_item() const noexcept { return find("method") == R"("rpc.item")"; }
  [[nodiscard]] Broken* find_broken(std::string_view id) const noexcept;
  void break_own_stream(std::string_view id, std::string_view why);
  bool refuse(const Error& error, std::size_t begin, Buffer& out);
  void write_error_response(const Error& error, std::string_view id, Buffer& out);
  void write_error_member(const Error& error, Buffer& out);

  codec::MsgpackToJson to_json_;
  codec::JsonToMsgpack to_msgpack_;
  json::JsonWriter writer_;
  json::JsonReader reader_;
  const char* message_ = nullptr;  // whose values stay, or null
  std::size_t start_ = 0;          // of the text in its buffer
  std::size_t bytes_max_ = 0;      // of the text
  std::size_t begin_ = 0;          // of the envelope in the buffer
  std::string_view method_;        // of the envelope, where it is a string
  std::vector<Unrepresentable> unrepresentable_;
  std::vector<Named> members_;
  std::vector<std::string_view> elements_;
  std::vector<std::string> refusals_;
  std::vector<std::string> cancels_;
  std::vector<Broken>* broken_ = nullptr;
  std::size_t message_bytes_max_ = 0;
  std::size_t written_ = 0;  // bytes of the batch before the element
  Buffer scratch_;
};

}  // namespace wirecall::message
