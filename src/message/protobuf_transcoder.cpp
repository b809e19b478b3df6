// See protobuf_transcoder.hpp.
#include "message/protobuf_transcoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "base/decimal.hpp"
#include "base/utf8.hpp"
#include "codec/codec_number.hpp"
#include "message/cancel_request.hpp"
#include "message/error_text.hpp"
#include "message/protobuf_usual.hpp"

namespace wirecall::message {

using protobuf_wire::Field;
using protobuf_wire::FieldReader;
using protobuf_wire::tag_of;
using protobuf_wire::WireType;

/// The content of one that is nothing but a batch.
static std::optional<std::string_view> batch_of(std::string_view message) noexcept {
  std::optional<std::string_view> batch;
  FieldReader fields{message};
  for (Field field; fields.next(field);) {
    const bool is_batch = field.tag == kBatchTag;
    if ((is_batch && batch) || protobuf_member(field.tag) != nullptr) return std::nullopt;
    if (is_batch) batch = field.content;
  }
  return fields.malformed() ? std::nullopt : batch;
}

static Transcoder::Status status_of(codec::ProtobufToJson::Status status) noexcept {
  switch (status) {
    case codec::ProtobufToJson::Status::malformed: return Transcoder::Status::malformed;
    case codec::ProtobufToJson::Status::too_deep: return Transcoder::Status::too_deep;
    case codec::ProtobufToJson::Status::too_large: return Transcoder::Status::too_large;
    default: return Transcoder::Status::done;
  }
}

// ---- as they are ----

bool ProtobufTranscoder::read_request(std::string_view message, const Limits& limits, IdText& id,
                                      Received& received) noexcept {
  if (!read_usual_request(message, limits.depth, id, received)) return false;
  received.encoding = Encoding::protobuf;
  received.text = message;
  return true;
}

bool ProtobufTranscoder::read_response(std::string_view message, const Limits& limits, IdText& id,
                                       Received& received) noexcept {
  if (!read_usual_response(message, limits.depth, id, received)) return false;
  received.encoding = Encoding::protobuf;
  received.text = message;
  return true;
}

void ProtobufTranscoder::begin_result(Buffer& out, Place) { out.push_back(kResultTag); }

void ProtobufTranscoder::end_reply(Buffer& out, std::string_view id_json) {
  if (const char* const end = write_usual_id(out.reserve(id_json.size() + kUsualIdBytesMax), id_json); end != nullptr)
    return out.set_end(end);
  Buffer padded{id_json};
  writer_.reset();
  from_json_(padded.padded(), kIdField, writer_);
  writer_.finish(out);
}

void ProtobufTranscoder::append_integer_result(Buffer& out, std::int64_t value, std::string_view id_json, Place) {
  out.set_end(write_integer_result(out.reserve(kIntegerResultBytesMax), value));
  end_reply(out, id_json);
}

void ProtobufTranscoder::append_packed_result(Buffer& out, std::string_view packed, std::string_view id_json, Place) {
  out.set_end(write_packed_result(out.reserve(packed.size() + 4), packed));
  end_reply(out, id_json);
}

void ProtobufTranscoder::append_error(Buffer& out, const Error& error, std::string_view id_json, Place) {
  Buffer data{error.data()};
  writer_.reset();
  writer_.begin(kErrorField);
  write_error(error.code(), error.message(), data.padded());
  writer_.end();
  writer_.finish(out);
  end_reply(out, id_json);
}

// One that read_request reads, of which nothing else need be changed: it has neither time nor credit. Its id stays in
// its place, and whatever is first now is what a message may begin with.
void ProtobufTranscoder::append_request(Buffer& out, std::string_view request, const RequestEdits& edits) {
  constexpr std::uint32_t kIdTag = tag_of(kIdField, WireType::length);
  std::array<char, 22> id;  // 64 bits, in quotes
  char* id_end = id.data();
  if (edits.id_is_string) *id_end++ = '"';
  id_end = write_decimal(id_end, edits.id);
  if (edits.id_is_string) *id_end++ = '"';
  WIRECALL_ASSERT(!edits.timeout_ms && !edits.stream);
  FieldReader fields{request};
  for (Field field; fields.next(field);) {
    if (field.tag == kIdTag) {
      end_reply(out, {id.data(), static_cast<std::size_t>(id_end - id.data())});
    } else if (field.tag != kFromMember.tag() && (field.tag != kToMember.tag() || edits.keeps_to)) {
      out.append({field.begin, static_cast<std::size_t>(fields.position() - field.begin)});
    }
  }
  if (edits.from_json.empty()) return;
  Buffer from{edits.from_json};
  writer_.reset();
  write_member(kFromMember, from.padded());
  writer_.finish(out);
}

// ---- to JSON ----

struct ProtobufTranscoder::Envelope {
  std::size_t begin;  ///< in the buffer
  std::string_view method = {};
  std::string_view unrepresentable_params = {};
};

Transcoder::Status ProtobufTranscoder::decode(std::string_view message, const Limits& limits, std::size_t bytes_max,
                                              Buffer& out) {
  constexpr std::uint32_t kUsualDepth = 2;  // of the envelope and what is in it
  if (limits.depth >= kUsualDepth && bytes_max >= kUsualJsonBytesMax && append_usual_json(message, out))
    return Status::done;
  start_ = out.size();
  bytes_max_ = bytes_max;
  depth_max_ = limits.depth;
  to_json_.begin_message(bytes_max);
  const std::optional<std::string_view> batch = batch_of(message);
  depth_ = batch ? 2 : 1;
  return batch ? read_batch(*batch, out) : read_envelope(message, out);
}

Transcoder::Status ProtobufTranscoder::read_batch(std::string_view batch, Buffer& out) {
  out.push_back('[');
  FieldReader fields{batch};
  bool any = false;
  for (Field field; fields.next(field);) {
    if (field.tag != kMessagesTag) continue;
    if (std::exchange(any, true)) out.push_back(',');
    if (batch_of(field.content)) {  // refused, whatever is in it
      out.append("[]");
    } else if (const Status status = read_envelope(field.content, out); status != Status::done) {
      return status;
    }
    if (out.size() - start_ > bytes_max_) return Status::too_large;
  }
  out.push_back(']');
  return fields.malformed() ? Status::malformed : Status::done;
}

Transcoder::Status ProtobufTranscoder::read_envelope(std::string_view message, Buffer& out) {
  Envelope envelope{.begin = out.size()};
  out.append(R"({"jsonrpc":"2.0")");
  FieldReader fields{message};
  for (Field field; fields.next(field);) {
    Status status = Status::done;
    if (const ProtobufMember* const member = protobuf_member(field.tag)) {
      status = read_member(*member, field, envelope, out);
    } else if (field.tag == kBatchTag) {
      out.append(R"(,"jsonrpc":false)");  // a batch beside other members makes the envelope invalid
    }
    if (status != Status::done) return status;
    if (out.size() - start_ > bytes_max_) return Status::too_large;
  }
  if (fields.malformed()) return Status::malformed;
  out.push_back('}');
  if (!envelope.unrepresentable_params.empty() && envelope.method == "rpc.item") break_stream(envelope, out);
  return Status::done;
}

Transcoder::Status ProtobufTranscoder::read_member(const ProtobufMember& member, const Field& field, Envelope& envelope,
                                                   Buffer& out) {
  if (member.type == ProtobufType::value) return read_value(member, field.content, envelope, out);
  out.append(",\"");
  out.append(member.name);
  out.append("\":");
  json_writer_.reset(out);
  switch (member.type) {
    case ProtobufType::count: json_writer_.unsigned_integer(field.value); return Status::done;
    case ProtobufType::flag: json_writer_.boolean(field.value != 0); return Status::done;
    case ProtobufType::error: return read_error(field.content, out);
    default: break;
  }
  if (member.name == "method") envelope.method = field.content;
  return read_text(field.content, out);
}

Transcoder::Status ProtobufTranscoder::read_text(std::string_view text, Buffer& out) {
  const char* const end = text.data() + text.size();
  if (find_no_utf8(text.data(), end) != end) return Status::malformed;
  json_writer_.reset(out);
  json_writer_.string(text);
  return Status::done;
}

auto ProtobufTranscoder::convert(std::string_view value, std::uint32_t levels_around, Buffer& out, codec::Names names)
    -> Values::Status {
  const std::uint32_t around = depth_ + levels_around;
  return to_json_(value, out,
                  {.depth_max = depth_max_ - std::min(depth_max_, around),
                   .bytes_max = bytes_max_ - std::min(bytes_max_, out.size() - start_)},
                  names);
}

Transcoder::Status ProtobufTranscoder::read_value(const ProtobufMember& member, std::string_view value,
                                                  Envelope& envelope, Buffer& out) {
  const std::size_t before = out.size();
  const bool is_params = member.field == kParamsField;
  const bool is_result = member.name == "result";
  out.append(",\"");
  out.append(member.name);
  out.append("\":");
  const std::size_t begin = out.size();
  // In JSON bytes would be an object, and so params by name.
  const bool is_wrong = !is_result && codec::is_opaque(Values::kind_of(value));
  const Values::Status status = convert(value, 0, out, is_params ? codec::Names::members : codec::Names::data);
  if (is_wrong && status == Values::Status::done) {
    out.truncate(begin);
    out.append("false");
  }
  if (status != Values::Status::no_form) return status_of(status);
  if (is_result) {
    out.truncate(before);
    out.append(R"(,"error":)");
    out.append(error_text(unrepresentable_result(codec::kNotFinite)));
    return Status::done;
  }
  out.truncate(begin);
  out.append(is_params ? "null" : "false");
  if (!is_params || !envelope.unrepresentable_params.empty()) return Status::done;
  envelope.unrepresentable_params = value;
  unrepresentable_.push_back({envelope.begin - start_, codec::kNotFinite});
  return Status::done;
}

Transcoder::Status ProtobufTranscoder::read_error(std::string_view error, Buffer& out) {
  constexpr std::uint32_t kCodeTag = tag_of(kCodeField, WireType::varint);
  constexpr std::uint32_t kMessageTag = tag_of(kMessageField, WireType::length);
  constexpr std::uint32_t kDataTag = tag_of(kDataField, WireType::length);
  std::uint64_t code = 0;
  std::string_view text;
  Field first_data;
  FieldReader fields{error};
  for (Field field; fields.next(field);) {
    if (field.tag == kCodeTag) code = field.value;
    if (field.tag == kMessageTag) text = field.content;
    if (field.tag == kDataTag && first_data.begin == nullptr) first_data = field;
  }
  if (fields.malformed()) return Status::malformed;
  out.append(R"({"code":)");
  json_writer_.reset(out);
  json_writer_.integer(protobuf_wire::from_zigzag(code));
  out.append(R"(,"message":)");
  if (const Status status = read_text(text, out); status != Status::done) return status;
  if (first_data.begin != nullptr) {
    const char* const end = error.data() + error.size();
    const std::string_view from{first_data.begin, static_cast<std::size_t>(end - first_data.begin)};
    const std::optional<std::string_view> data = to_json_.join(from, kDataField, first_data.content);
    if (!data) return Status::too_large;
    out.append(R"(,"data":)");
    const std::size_t begin = out.size();
    const Values::Status status = convert(*data, 1, out);
    if (status == Values::Status::no_form) {
      out.truncate(begin);
      out.append(unrepresentable_result(codec::kNotFinite).data());
    } else if (status != Values::Status::done) {
      return status_of(status);
    }
  }
  out.push_back('}');
  return Status::done;
}

/// In place of an item that has no form: the response that ends its stream.
void ProtobufTranscoder::break_stream(const Envelope& envelope, Buffer& out) {
  const std::optional<std::string_view> value = to_json_.find_member(envelope.unrepresentable_params, "id");
  if (!value) return;
  Buffer id;
  if (to_json_(*value, id, {.depth_max = depth_max_, .bytes_max = bytes_max_}) != Values::Status::done) return;
  const char first = id.view().front();
  if (first != '"' && first != '-' && !is_digit(first)) return;  // no stream has such an id
  out.truncate(envelope.begin);
  wirecall::write_error(out, unrepresentable_result(codec::kNotFinite), id.view());
  cancels_.push_back(cancel_request(id.view()));
  unrepresentable_.pop_back();
}

// ---- from JSON ----

void ProtobufTranscoder::encode(std::string_view json, Buffer& out) {
  writer_.reset();
  const auto begin = std::ranges::find_if_not(json, is_space);
  if (begin == json.end() || *begin != '[') {
    write_envelope(json);
    return writer_.finish(out);
  }
  elements_.clear();
  reader_.reset(json);
  reader_.begin_array();
  while (reader_.next_element()) elements_.push_back(reader_.skip());
  writer_.begin(kBatchField);
  for (const std::string_view element : elements_) {
    writer_.begin(kMessagesField);
    write_envelope(element);
    writer_.end();
  }
  writer_.end();
  writer_.finish(out);
}

void ProtobufTranscoder::write_envelope(std::string_view json) {
  reader_.reset(json);
  if (!reader_.begin_object()) return;  // nothing that we send
  std::array<std::string_view, kProtobufMembers.size()> values;
  for (std::string_view name; reader_.next_member(name);) {
    const std::string_view value = reader_.skip();
    const auto found = std::ranges::find(kProtobufMembers, name, &ProtobufMember::name);
    if (found != kProtobufMembers.end()) values[static_cast<std::size_t>(found - kProtobufMembers.begin())] = value;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].empty()) write_member(kProtobufMembers[i], values[i]);
  }
}

/// A number from 0 on, rounded up, which no count is beyond 64 bits.
static std::uint64_t count_of(std::string_view number) noexcept {
  std::uint64_t count = 0;
  if (codec::parse_integer(number, count) == codec::Integrality::exact) return count;
  constexpr double kEnd = 0x1p64;
  double real = 0;
  if (number.starts_with('-')) return 0;
  if (!codec::parse_double(number, real) || std::ceil(real) >= kEnd) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::ceil(real));
}

/// One of another type than its field has is left out.
void ProtobufTranscoder::write_member(const ProtobufMember& member, std::string_view json) {
  reader_.reset(json);
  const ValueKind kind = reader_.kind();
  switch (member.type) {
    case ProtobufType::value:
      return from_json_(json, member.field, writer_,
                        member.field == kParamsField ? codec::Names::members : codec::Names::data);
    case ProtobufType::error:
      writer_.begin(member.field);
      write_error(json);
      return writer_.end();
    case ProtobufType::count:
      if (kind == ValueKind::number) writer_.varint(member.field, count_of(json));
      return;
    case ProtobufType::flag:
      if (kind == ValueKind::boolean) writer_.varint(member.field, json == "true" ? 1 : 0);
      return;
    case ProtobufType::text: break;
  }
  std::string_view text;
  if (kind == ValueKind::string && reader_.read_string(text)) writer_.bytes(member.field, text);
}

void ProtobufTranscoder::write_error(std::string_view json) {
  using Code = std::numeric_limits<std::int64_t>;
  reader_.reset(json);
  std::int64_t code = 0;
  std::string_view text;
  std::string_view data;
  bool has_code = false;
  bool has_text = false;
  const bool is_object = reader_.kind() == ValueKind::object && reader_.begin_object();
  for (std::string_view name; is_object && reader_.next_member(name);) {
    if (name == "code" && reader_.kind() == ValueKind::number) {
      has_code = reader_.read_int(Code::min(), Code::max(), code);
      if (!has_code) break;
    } else if (name == "message" && reader_.kind() == ValueKind::string) {
      has_text = reader_.read_string(text);
    } else {
      const std::string_view value = reader_.skip();
      if (name == "data") data = value;
    }
  }
  reader_.clear_failure();
  if (has_code && has_text) return write_error(code, text, data);
  const Error error =
      unrepresentable_result("the error has no whole number as its code, or no text, which protobuf cannot express");
  Buffer error_data{error.data()};
  write_error(error.code(), error.message(), error_data.padded());
}

void ProtobufTranscoder::write_error(std::int64_t code, std::string_view text, std::string_view data_json) {
  writer_.varint(kCodeField, protobuf_wire::to_zigzag(code));
  writer_.bytes(kMessageField, text);
  if (!data_json.empty()) from_json_(data_json, kDataField, writer_);
}

}  // namespace wirecall::message
