// Transcoder: messages from another encoding to JSON and back, for the edge at which a peer speaks it: what is inside
// knows JSON envelopes alone. Two kinds:
//
//   WholeTranscoder   each message becomes JSON as a whole, and leaves as a whole: a new encoding is two functions.
//                     What is usual may still be read, answered and handed on as it is (`read_request`,
//                     `read_response`, `replies`)
//   NativeTranscoder  the envelope alone becomes JSON; params and results stay as they are where whoever reads them can
//                     read that, and results and events are written in the encoding
//
// A value that the other encoding has no form for costs the call that it belongs to, and no other (docs/wire.md,
// "MessagePack"):
//
//   in params           the request is to be answered -32602, a notification is dropped
//   in result, error    the response becomes the error -32603 for its id
//   in another member   one that JSON-RPC names becomes false, which is refused as any wrong type; others are left out
//   in an item          the stream that it is of ends with the error -32603, and whoever sends it is told to stop
//
// A transcoder decides nothing else about a message: what is a request, and what is malformed, says who reads the JSON.
// It keeps its memory from message to message. One owner, one thread.
#pragma once

#include "codec/transcode.hpp"
#include "message/envelope_members.hpp"
#include "message/json_bytes.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

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
/// What takes the place of a message of ours that is larger than a message may be.
[[nodiscard]] Error too_large_request();
[[nodiscard]] Error too_large_reply();

class NativeTranscoder;

/// What a request is handed on with: another id, less time and other credit where it has any, and its caller's name.
struct RequestEdits {
  std::uint64_t id;
  bool id_is_string = false;  ///< the number's digits as a string
  std::optional<std::uint64_t> timeout_ms = std::nullopt;
  std::optional<std::uint64_t> stream = std::nullopt;  ///< 0 takes that member away
  std::string_view from_json = {};                     ///< empty for nobody's
  bool keeps_to = false;                               ///< who gets it looks for whom it names
};

/// Writes messages whose params and results stay in an encoding: replies, and requests that have come in it. Members
/// of replies are in the same order as in JSON: result or error, id. Ids and data of errors come as JSON, as which they
/// are kept.
class MessageWriter {
 public:
  /// Whether what is written is a message, or an element of a batch, which has nothing in front of it that tells its
  /// encoding.
  enum class Place : std::uint8_t { message, element };

  /// The value of the result follows, and then `end_reply`.
  virtual void begin_result(Buffer& out, Place place = Place::message) = 0;
  virtual void end_reply(Buffer& out, std::string_view id_json) = 0;
  /// A whole reply with that as its result.
  virtual void append_integer_result(Buffer& out, std::int64_t value, std::string_view id_json, Place place) = 0;
  /// The same of a packed value of at most kPackedResultMax bytes.
  virtual void append_packed_result(Buffer& out, std::string_view packed, std::string_view id_json, Place place) = 0;
  static constexpr std::size_t kPackedResultMax = 16;  ///< a hash, and an integer
  /// A whole reply. The texts have padding behind them.
  virtual void append_error(Buffer& out, const Error& error, std::string_view id_json,
                            Place place = Place::message) = 0;
  /// A request or notification that has been read as it is, as it came but for that, and without `from` of its own, nor
  /// `to` unless that is kept.
  virtual void append_request(Buffer& out, std::string_view request, const RequestEdits& edits) = 0;

 protected:
  MessageWriter() = default;
  MessageWriter(MessageWriter&&) = delete;
  ~MessageWriter() = default;
};

class Transcoder {
 public:
  enum class Status : std::uint8_t {
    done,
    malformed,  ///< not of the encoding, or something follows it
    too_deep,
    too_large,  ///< as JSON it has more than twice Limits::max_message_size
  };

  /// What JSON may be larger than Limits::max_message_size: base64 by a third, numbers and escapes by more.
  static constexpr std::size_t kGrowth = 2;

  Transcoder() = default;
  Transcoder(Transcoder&&) = delete;
  virtual ~Transcoder();

  /// The same object where params and results may stay in the encoding; null where messages become JSON whole.
  [[nodiscard]] virtual NativeTranscoder* native() noexcept { return nullptr; }

  /// What answers requests that have been read as they are, and hands them on; null where none are.
  [[nodiscard]] virtual MessageWriter* message_writer() noexcept { return nullptr; }

  /// In a few words, of the two that refuse a message as text that is none is refused.
  [[nodiscard]] virtual std::string_view cause_of(Status status) const noexcept = 0;
  /// Whether that is one whole message. Of a native encoding `members` becomes what there is in a single envelope, for
  /// those who would look for it again.
  [[nodiscard]] virtual Status check(std::string_view message, const Limits& limits, EnvelopeMembers& members) = 0;
  /// Reads a message that has not been checked, if it is one of those that nearly all are (message/usual_request.hpp):
  /// a request or notification for a method that is not wirecall's own. Its params stay in the message; `id` has its
  /// id. False where it is anything else, or no message: `received` means nothing then, and `check` comes next.
  [[nodiscard]] virtual bool read_request(std::string_view message, const Limits& limits, IdText& id,
                                          Received& received) noexcept;
  /// The same of a response to be handed on, which has a result and an id and nothing else. False where whole messages
  /// are read in another way (`NativeTranscoder::read`).
  [[nodiscard]] virtual bool read_response(std::string_view message, const Limits& limits, IdText& id,
                                           Received& received) noexcept;
  /// Appends the JSON of one whole message to `out`; only when it is done, all of what has been appended means
  /// something.
  Status to_json(std::string_view message, const Limits& limits, Buffer& out);
  /// The same of one that has been checked.
  virtual Status checked_to_json(std::string_view message, const Limits& limits, Buffer& out) = 0;
  /// Of the last message. Taken away, since its handlers may outlive the next.
  [[nodiscard]] std::vector<Unrepresentable> take_unrepresentable() noexcept {
    return std::exchange(unrepresentable_, {});
  }
  /// Of the last message: what the peer is to be told, since it sends items in vain; as JSON.
  [[nodiscard]] std::vector<std::string> take_cancels() noexcept { return std::exchange(cancels_, {}); }

  /// Appends one message of ours to `out`. `json` has been validated, and has padding behind it. `broken` are the calls
  /// of this connection that have such streams; null where there are none. False when nothing is left to be sent.
  virtual bool from_json(std::string_view json, const Limits& limits, Buffer& out,
                         std::vector<Broken>* broken = nullptr) = 0;
  /// The same in place, of what is behind `at`.
  bool from_json_behind(std::size_t at, const Limits& limits, Buffer& text, std::vector<Broken>* broken = nullptr);
  /// Of the last message, as JSON: for each request that could not be sent the response by which it is refused, and for
  /// a stream that has broken the cancelling of its call.
  [[nodiscard]] std::vector<std::string> take_refusals() noexcept { return std::exchange(refusals_, {}); }

 protected:
  std::vector<Unrepresentable> unrepresentable_;
  std::vector<std::string> refusals_;
  std::vector<std::string> cancels_;

 private:
  Buffer scratch_;  // of from_json_behind
};

/// An encoding of which each message becomes JSON as a whole.
class WholeTranscoder : public Transcoder {
 public:
  [[nodiscard]] std::string_view cause_of(Status status) const noexcept final;
  [[nodiscard]] Status check(std::string_view message, const Limits& limits, EnvelopeMembers& members) final;
  Status checked_to_json(std::string_view message, const Limits& limits, Buffer& out) final;
  bool from_json(std::string_view json, const Limits& limits, Buffer& out, std::vector<Broken>* broken = nullptr) final;

 private:
  /// Appends the JSON of one message to `out`, of at most so many bytes. What is no message is malformed; whether the
  /// JSON is any, and not too deep, is looked at later. What it has to say of values without a form, it adds to
  /// `unrepresentable_` and `cancels_`.
  virtual Status decode(std::string_view message, const Limits& limits, std::size_t bytes_max, Buffer& out) = 0;
  /// Appends a message to `out`, given as valid JSON.
  virtual void encode(std::string_view json, Buffer& out) = 0;
};

/// An encoding in which params and results may stay.
class NativeTranscoder : public Transcoder, public MessageWriter {
 public:
  explicit NativeTranscoder(Encoding encoding) noexcept : encoding_(encoding) {}
  [[nodiscard]] Encoding encoding() const noexcept { return encoding_; }
  [[nodiscard]] NativeTranscoder* native() noexcept final { return this; }
  [[nodiscard]] MessageWriter* message_writer() noexcept final { return this; }

  // ---- messages that have come, and have been checked ----

  /// Reads one into `received`, and `elements` if it is a batch. What is usual is read as it is; else by way of its
  /// envelope as JSON in `text`, which has only members that somebody asks for. Params and results are not in there,
  /// but the places that they have in the message: `restore` makes them views of that. `members` are what `check` has
  /// found in it.
  Status read(std::string_view message, const Limits& limits, Buffer& text, Received& received,
              std::span<Received> elements = {}, const EnvelopeMembers& members = {});
  /// For what `read` has read: a single message, or one element of a batch.
  static void restore(Encoding encoding, std::string_view message, Received& received) noexcept;
  /// Reads a batch of more than Limits::batch elements into `received`, whose fault is batch_limit. None of its
  /// requests is run, so its text, which is in `text`, has only what the refusal needs: each id that somebody waits by,
  /// until those are larger than the refusal may be, and whether there is anything but responses. With `responses` it
  /// has these, too, as they are.
  virtual Status read_long_batch(std::string_view batch, const Limits& limits, bool responses, Buffer& text,
                                 Received& received) = 0;
  /// Has `json` hold as JSON what has been restored, the params or the result. Empty, or the reason why they have no
  /// form in that, or are too large; then they are null.
  [[nodiscard]] std::string_view unpack(Received& restored, const Limits& limits, Buffer& json);
  /// How large a single envelope is as JSON, where that can be told without making it.
  [[nodiscard]] virtual std::optional<JsonBytes> json_bytes(std::string_view envelope,
                                                            std::uint32_t depth_max) const noexcept = 0;
  /// The name of the method in one envelope; empty where there is none.
  [[nodiscard]] virtual std::string_view method_of(std::string_view envelope,
                                                   const EnvelopeMembers& members) const noexcept = 0;
  /// Whether there is a response, or what is nothing at all: an envelope without a method.
  [[nodiscard]] virtual bool has_response(std::string_view message, const EnvelopeMembers& members) const noexcept = 0;
  /// Of a batch: what is in front of its elements, in bytes; and the element that begins at that offset.
  [[nodiscard]] virtual std::size_t elements_offset(std::string_view batch) const noexcept = 0;
  [[nodiscard]] virtual std::string_view element_at(std::string_view batch, std::size_t offset) const noexcept = 0;

  // ---- messages that are written ----

  /// As from_json, of one that becomes an element of a batch.
  virtual bool element_from_json(std::string_view json, const Limits& limits, Buffer& out) = 0;
  /// The params of a request, valid JSON with padding behind it. Empty, or why they have no form.
  [[nodiscard]] virtual std::string_view append_params(Buffer& out, std::string_view json) = 0;
  /// One JSON value, valid and with padding behind it; what has no form becomes null.
  virtual void append_value(Buffer& out, std::string_view json) = 0;
  /// An id, or the token of an LSP $/progress.
  virtual void append_id(Buffer& out, std::string_view id_json) = 0;
  /// `count` messages follow; their heads have at most so many bytes.
  virtual void begin_batch(Buffer& out, std::size_t count) = 0;
  static constexpr std::size_t kBatchHeadBytesMax = 12;
  /// An item of a stream: up to its number, where `credited`, else up to its value.
  virtual void begin_item(Buffer& out, bool credited, std::string_view name_json) = 0;
  /// The value follows.
  virtual void append_item_number(Buffer& out, std::uint64_t number) = 0;
  /// A notification, with encoded params or none.
  virtual void append_event(Buffer& out, std::string_view topic, std::string_view params) = 0;
  /// A request of so many members: its MessageCodec::request_head and what that is followed by, then further members.
  virtual void begin_request(Buffer& out, std::size_t members, Place place = Place::message) = 0;
  virtual void append_member(Buffer& out, std::string_view name, std::uint64_t number) = 0;
  virtual void append_member(Buffer& out, std::string_view name, std::string_view json) = 0;

 private:
  /// A single request, notification or result in its usual form, without JSON: `text` holds what is JSON of it, the
  /// method and the id. False: what has been appended means nothing.
  virtual bool read_directly(std::string_view message, Buffer& text, Received& received,
                             const EnvelopeMembers& members) = 0;
  virtual Status read_envelope(std::string_view message, const Limits& limits, Buffer& text,
                               const EnvelopeMembers& members) = 0;
  virtual codec::Transcoded value_to_json(std::string_view value, Buffer& out, std::size_t bytes_max,
                                          codec::Names names) = 0;

  const Encoding encoding_;
};

}  // namespace wirecall::message
