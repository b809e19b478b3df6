// ProtobufTranscoder: messages in Protocol Buffers, as docs/wirecall.proto has them, to JSON and back (docs/wire.md,
// "Protobuf"). Fields become members in the order in which they come, so that one that comes twice is refused as a
// member that does. It links no protobuf: the wire format is codec/protobuf_wire.hpp's, values are
// codec/protobuf_value.hpp's. Of a usual request (protobuf_usual.hpp) the params stay as they are, and so does the
// result; at a broker, between two that speak it, so does all but the id. One owner, one thread.
#pragma once

#include "codec/json_reader.hpp"
#include "codec/json_writer.hpp"
#include "codec/protobuf_value.hpp"
#include "codec/protobuf_wire.hpp"
#include "message/protobuf_fields.hpp"
#include "message/transcoder.hpp"

namespace wirecall::message {

class ProtobufTranscoder final : public WholeTranscoder, public MessageWriter {
 public:
  [[nodiscard]] MessageWriter* message_writer() noexcept override { return this; }
  [[nodiscard]] bool read_request(std::string_view message, const Limits& limits, IdText& id,
                                  Received& received) noexcept override;
  [[nodiscard]] bool read_response(std::string_view message, const Limits& limits, IdText& id,
                                   Received& received) noexcept override;
  // There are no batches of them.
  void begin_result(Buffer& out, Place) override;
  void end_reply(Buffer& out, std::string_view id_json) override;
  void append_integer_result(Buffer& out, std::int64_t value, std::string_view id_json, Place) override;
  void append_packed_result(Buffer& out, std::string_view packed, std::string_view id_json, Place) override;
  void append_error(Buffer& out, const Error& error, std::string_view id_json, Place) override;
  void append_request(Buffer& out, std::string_view request, const RequestEdits& edits) override;

 private:
  using Values = codec::ProtobufToJson;
  struct Envelope;

  Status decode(std::string_view message, const Limits& limits, std::size_t bytes_max, Buffer& out) override;
  void encode(std::string_view json, Buffer& out) override;

  // To JSON.
  Status read_batch(std::string_view batch, Buffer& out);
  Status read_envelope(std::string_view message, Buffer& out);
  Status read_member(const ProtobufMember& member, const protobuf_wire::Field& field, Envelope& envelope, Buffer& out);
  Status read_text(std::string_view text, Buffer& out);
  Status read_value(const ProtobufMember& member, std::string_view value, Envelope& envelope, Buffer& out);
  Status read_error(std::string_view error, Buffer& out);
  Values::Status convert(std::string_view value, std::uint32_t levels_around, Buffer& out,
                         codec::Names names = codec::Names::data);
  void break_stream(const Envelope& envelope, Buffer& out);

  // From JSON.
  void write_envelope(std::string_view json);
  void write_member(const ProtobufMember& member, std::string_view json);
  void write_error(std::string_view json);
  void write_error(std::int64_t code, std::string_view text, std::string_view data_json);

  Values to_json_;
  json::JsonWriter json_writer_;
  std::size_t start_ = 0;      // of the text in its buffer
  std::size_t bytes_max_ = 0;  // of the text
  std::uint32_t depth_max_ = 0;
  std::uint32_t depth_ = 0;  // of the envelope

  codec::JsonToProtobuf from_json_;
  protobuf_wire::MessageWriter writer_;
  json::JsonReader reader_;
  std::vector<std::string_view> elements_;
};

}  // namespace wirecall::message
