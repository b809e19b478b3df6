// BinaryTranscoder: messages in MessagePack or CBOR (message/binary_format.hpp). It walks the envelope member by
// member; params by name are members, not user data, so nothing is wrapped there. Values are transcoded by
// codec/transcode.hpp. It has fifty functions: half are the interface's, and both directions share its memory.
#pragma once

#include "codec/json_reader.hpp"
#include "codec/json_writer.hpp"
#include "codec/transcode.hpp"
#include "message/binary_format.hpp"
#include "message/envelope_text.hpp"
#include "message/transcoder.hpp"

namespace wirecall::message {

template <class Format>
class BinaryTranscoder final : public NativeTranscoder {
 public:
  // A request, but for the head of its map, which says how many members it has: the method's name follows, its params.
  static constexpr std::string_view kRequestHead = EnvelopeText<Format, "jsonrpc", "2.0", "method">::view;
  static constexpr std::string_view kParamsHead = EnvelopeText<Format, "params">::view;

  BinaryTranscoder() noexcept : NativeTranscoder(Format::kEncoding) {}

  [[nodiscard]] std::string_view cause_of(Status status) const noexcept override {
    return status == Status::too_deep ? Format::kTooDeep : Format::kMalformed;
  }
  [[nodiscard]] Status check(std::string_view message, const Limits& limits, EnvelopeMembers& members) override;
  [[nodiscard]] bool read_request(std::string_view message, const Limits& limits, IdText& id,
                                  Received& received) noexcept override {
    if (!Format::read_request(message, limits.depth, id, received)) return false;
    received.encoding = Format::kEncoding;
    received.text = message;
    return true;
  }
  Status checked_to_json(std::string_view message, const Limits& limits, Buffer& out) override;
  bool from_json(std::string_view json, const Limits& limits, Buffer& out,
                 std::vector<Broken>* broken = nullptr) override;
  bool element_from_json(std::string_view json, const Limits& limits, Buffer& out) override;

  Status read_long_batch(std::string_view batch, const Limits& limits, bool responses, Buffer& text,
                         Received& received) override;
  [[nodiscard]] std::optional<JsonBytes> json_bytes(std::string_view envelope,
                                                    std::uint32_t depth_max) const noexcept override {
    return Format::json_bytes(envelope, depth_max);
  }
  [[nodiscard]] std::string_view method_of(std::string_view envelope,
                                           const EnvelopeMembers& members = {}) const noexcept override;
  [[nodiscard]] bool has_response(std::string_view message,
                                  const EnvelopeMembers& members = {}) const noexcept override;
  [[nodiscard]] std::size_t elements_offset(std::string_view batch) const noexcept override;
  [[nodiscard]] std::string_view element_at(std::string_view batch, std::size_t offset) const noexcept override;

  [[nodiscard]] std::string_view append_params(Buffer& out, std::string_view json) override {
    return from_json_(json, out, codec::Names::members).why;
  }
  void append_value(Buffer& out, std::string_view json) override;
  void append_id(Buffer& out, std::string_view id_json) override;
  void begin_result(Buffer& out, Place place) override;
  void end_reply(Buffer& out, std::string_view id_json) override;
  void append_integer_result(Buffer& out, std::int64_t value, std::string_view id_json, Place place) override;
  void append_packed_result(Buffer& out, std::string_view packed, std::string_view id_json, Place place) override;
  void append_error(Buffer& out, const Error& error, std::string_view id_json, Place place) override;
  void begin_batch(Buffer& out, std::size_t count) override;
  void begin_item(Buffer& out, bool credited, std::string_view name_json) override;
  void append_item_number(Buffer& out, std::uint64_t number) override;
  void append_event(Buffer& out, std::string_view topic, std::string_view params) override;
  void begin_request(Buffer& out, std::size_t members, Place place) override;
  void append_member(Buffer& out, std::string_view name, std::uint64_t number) override;
  void append_member(Buffer& out, std::string_view name, std::string_view json) override;
  void append_request(Buffer& out, std::string_view request, const RequestEdits& edits) override;

 private:
  struct Named {
    std::string_view name;
    std::string_view value;
  };

  /// A whole reply, whose result `write` writes: kPackedResultMax bytes behind a head, at most.
  template <class Write>
  void append_small_result(Buffer& out, std::string_view id_json, Place place, const Write& write);
  bool read_directly(std::string_view message, Buffer& text, Received& received,
                     const EnvelopeMembers& members) override;
  bool append_term(std::string_view value, Buffer& text);
  Status read_envelope(std::string_view message, const Limits& limits, Buffer& text,
                       const EnvelopeMembers& members) override;
  codec::Transcoded value_to_json(std::string_view value, Buffer& out, std::size_t bytes_max,
                                  codec::Names names) override {
    return to_json_(value, out, bytes_max, names);
  }

  // To JSON, what has been checked. False: it becomes too large.
  Status convert(std::string_view message, const Limits& limits, Buffer& out);
  void begin_envelope(Buffer& out);
  const char* envelope(const char* p, Buffer& out);
  bool envelope(const EnvelopeMembers& members, Buffer& out);
  bool end_envelope(std::string_view params, Buffer& out);
  bool member(std::string_view name, std::string_view value, Buffer& out);
  bool element(std::string_view value, Buffer& out);
  std::size_t write_refusable(std::string_view id, Buffer& out);
  bool keep(std::string_view name, std::string_view value, Buffer& out);
  void break_stream(std::string_view params, Buffer& out);
  [[nodiscard]] std::size_t bytes_left(const Buffer& out) const noexcept;
  [[nodiscard]] bool fits(const Buffer& out) const noexcept { return out.size() - start_ <= bytes_max_; }
  void begin_member(std::string_view name, Buffer& out);
  void spoil(Buffer& out);

  // From JSON. False: nothing of it is left.
  bool envelope(std::string_view json, Buffer& out, Place place);
  void begin_writing(const Limits& limits, std::vector<Broken>* broken);
  void read_members(std::string_view json);
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
  [[nodiscard]] bool is_item() const noexcept { return find("method") == R"("rpc.item")"; }
  [[nodiscard]] Broken* find_broken(std::string_view id) const noexcept;
  void break_own_stream(std::string_view id, std::string_view why);
  bool refuse(const Error& error, std::size_t begin, Buffer& out);
  void append_error_response(const Error& error, std::string_view id, Buffer& out, Place place);
  static void append_tag(Buffer& out, Place place) {
    if (!Format::kMessageTag.empty() && place == Place::message) out.append(Format::kMessageTag);
  }
  /// A member of an envelope: its name, empty where that is no string, and all of it.
  struct MemberSpan {
    std::string_view name;
    std::string_view member;
  };
  [[nodiscard]] MemberSpan member_at(const char*& p) const;
  static void begin_map(Buffer& out, std::size_t members) {
    out.set_end(Format::write_map_head(out.reserve(Format::kHeadBytesMax), members));
  }
  /// The string at `p`, whose head that is; empty where something else is.
  [[nodiscard]] std::string_view string_at(const char* p, const codec::Head& head) const {
    return head.type == codec::Type::string ? Format::content(p, head, arena_) : std::string_view{};
  }
  [[nodiscard]] const char* find_value(std::string_view envelope, std::string_view wanted) const;
  struct Refusable;
  [[nodiscard]] Refusable refusable_at(const char* p) const;
  void write_error_member(const Error& error, Buffer& out);

  codec::ToJson<typename Format::Values> to_json_;
  codec::FromJson<typename Format::Values> from_json_;
  json::JsonWriter writer_;
  json::JsonReader reader_;
  const char* message_ = nullptr;  // whose values stay, or null
  std::size_t start_ = 0;          // of the text in its buffer
  std::size_t bytes_max_ = 0;      // of the text
  std::size_t begin_ = 0;          // of the envelope in the buffer
  std::string_view method_;        // of the envelope, where it is a string
  mutable codec::Arena arena_;     // of names and methods that come in chunks
  std::vector<Named> members_;
  std::vector<std::string_view> elements_;
  std::vector<Broken>* broken_ = nullptr;
  std::size_t message_bytes_max_ = 0;
  std::size_t written_ = 0;  // bytes of the batch before the element
};

using MsgpackTranscoder = BinaryTranscoder<MsgpackMessages>;
using CborTranscoder = BinaryTranscoder<CborMessages>;

extern template class BinaryTranscoder<MsgpackMessages>;
extern template class BinaryTranscoder<CborMessages>;

}  // namespace wirecall::message
