// Messages from JSON and back, over any bytes: the first picks the type, the rest is read as JSON and, for itself, as
// protobuf's own bytes. What has been read can be written, in every encoding, and is read back equal; protobuf's
// json_util sees the same in what we write, and we see the same in what it writes.
#include <array>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/texts.hpp"
#include "kinds.pb.h"
#include "wirecall/protobuf/message_json.hpp"

#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Owned = std::unique_ptr<Message>;

constexpr std::uint32_t kNestMax = 256;  // a level of messages is at most two of JSON

/// Whether json_util keeps the path: it reads "Z" as "z" and "aBC" as "a_bc", which FieldMaskUtil and we read as "_z"
/// and "a_b_c", and "a(b,c)" as "a.b" and "a.c", with keys of maps in brackets and quotes, which they read as they
/// stand.
bool json_util_keeps(std::string_view path) {
  if (path.find_first_of("()[]\"\\") != std::string_view::npos) return false;
  char before = '.';
  for (std::size_t at = 0; at < path.size(); ++at) {
    const bool second = at >= 2 && path[at - 2] == '_';
    if (path[at] == '_' && (before == '.' || second)) return false;
    before = path[at];
  }
  return true;
}

/// Values of a field of numbers that json_util may change; none where it is of another type. One that is not set is 0.
std::vector<double> as_doubles(const Message& message, const FieldDescriptor* field) {
  const auto* const reflection = message.GetReflection();
  const auto values = [&](auto get, auto get_repeated) {
    std::vector<double> out;
    if (!field->is_repeated())
      out.push_back(static_cast<double>((reflection->*get)(message, field)));
    else
      for (int at = 0; at < reflection->FieldSize(message, field); ++at)
        out.push_back(static_cast<double>((reflection->*get_repeated)(message, field, at)));
    return out;
  };
  using google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: return values(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT64: return values(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT: return values(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE: return values(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    default: return {};
  }
}

bool json_util_keeps_paths(const Message& mask, const FieldDescriptor* field) {
  for (int at = 0; at < mask.GetReflection()->FieldSize(mask, field); ++at)
    if (!json_util_keeps(mask.GetReflection()->GetRepeatedString(mask, field, at))) return false;
  return true;
}

/// Besides masks, json_util reads an integer with an exponent or a fraction as a double: 97976936931381e3 is another.
/// It reads -0 as 0.
class WhatJsonUtilChanges final : public google::protobuf::util::MessageDifferencer::IgnoreCriteria {
 public:
  bool IsIgnored(const Message& a, const Message& b, const FieldDescriptor* field,
                 const std::vector<google::protobuf::util::MessageDifferencer::SpecificField>& /*parents*/) override {
    if (field->full_name() == "google.protobuf.FieldMask.paths")
      return !json_util_keeps_paths(a, field) || !json_util_keeps_paths(b, field);
    if (field->has_presence() && a.GetReflection()->HasField(a, field) != b.GetReflection()->HasField(b, field))
      return false;
    const std::vector<double> doubles = as_doubles(a, field);
    return !doubles.empty() && doubles == as_doubles(b, field);
  }
};

enum class Other { ours, json_util };

bool equal(const Message& a, const Message& b, Other other = Other::ours) {
  google::protobuf::util::MessageDifferencer differencer;
  if (other == Other::json_util) differencer.AddIgnoreCriteria(new WhatJsonUtilChanges);
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  differencer.set_field_comparator(&comparator);
  return differencer.Compare(a, b);
}

/// Null where the bytes are no value of the encoding, or no message of the type.
Owned read_as(const Message& type, const wirecall::Codec& codec, std::string_view bytes) {
  const fuzz::PaddedText padded{bytes};
  const wirecall::Scan scan = codec.scan(padded.view(), kNestMax);
  if (scan.status != wirecall::ScanStatus::complete || scan.offset != bytes.size()) return nullptr;
  const auto reader = codec.reader();
  reader->reset(padded.view());
  Owned message{type.New()};
  if (wirecall::protobuf::read(*reader, *message)) return message;
  require(reader->failed(), "a message was refused without a failure", bytes);
  return nullptr;
}

/// Empty where the encoding cannot hold it.
std::string written(const Message& message, const wirecall::Codec& codec) {
  wirecall::Buffer bytes;
  const auto writer = codec.writer();
  writer->reset(bytes);
  wirecall::protobuf::write(*writer, message);
  return writer->failed() ? std::string{} : std::string{bytes.view()};
}

/// Of a message that has been read from JSON, so that it has one form.
void check_forms(const Message& message, std::string_view input) {
  for (const wirecall::Codec* const codec :
       {&wirecall::json_codec(), &wirecall::msgpack_codec(), &wirecall::cbor_codec()}) {
    const std::string bytes = written(message, *codec);
    require(!bytes.empty(), "what was read cannot be written", input);
    const Owned back = read_as(message, *codec, bytes);
    require(back != nullptr, "what was written cannot be read", bytes);
    require(equal(*back, message), "what was written is another message", bytes);
  }
  const std::string text = written(message, wirecall::json_codec());
  const Owned theirs{message.New()};
  if (google::protobuf::util::JsonStringToMessage(text, theirs.get()).ok())
    require(equal(*theirs, message, Other::json_util), "json_util reads another message", text);
}

void check_text(const Message& type, std::string_view text) {
  const Owned message = read_as(type, wirecall::json_codec(), text);
  if (message == nullptr) return;
  check_forms(*message, text);
  const Owned theirs{type.New()};
  if (google::protobuf::util::JsonStringToMessage(std::string{text}, theirs.get()).ok())
    require(equal(*theirs, *message, Other::json_util), "json_util and we read different messages", text);
}

/// Whether unknown fields of `message` can be within an Any, from which nobody takes them.
bool holds_any(const Message& message) {
  const auto* const known = dynamic_cast<const kinds::WellKnown*>(&message);
  return dynamic_cast<const google::protobuf::Any*>(&message) != nullptr || (known != nullptr && known->has_packed());
}

void check_bytes(const Message& type, std::string_view bytes) {
  const Owned message{type.New()};
  if (!message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const std::string text = written(*message, wirecall::json_codec());
  if (text.empty()) return;
  const Owned read = read_as(type, wirecall::json_codec(), text);
  require(read != nullptr, "what was written of a message cannot be read", text);
  check_forms(*read, text);
  // Unknown fields have no form in JSON, and json_util leaves a list out that has some.
  message->DiscardUnknownFields();
  std::string theirs;
  if (!google::protobuf::util::MessageToJsonString(holds_any(*message) ? *read : *message, &theirs).ok()) return;
  const Owned again = read_as(type, wirecall::json_codec(), theirs);
  require(again != nullptr, "what json_util writes is refused", theirs);
  require(equal(*again, *read, Other::json_util), "json_util writes another message", theirs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = (google::protobuf::SetLogHandler(nullptr), true);
  static_cast<void>(quiet);
  static const std::array<const Message*, 6> types{
      &kinds::Scalars::default_instance(),    &kinds::Presence::default_instance(),
      &kinds::Containers::default_instance(), &kinds::Tree::default_instance(),
      &kinds::WellKnown::default_instance(),  &google::protobuf::Any::default_instance()};
  if (size == 0) return 0;
  const std::string_view rest = fuzz::text_of(data + 1, size - 1);
  check_text(*types[data[0] % types.size()], rest);
  check_bytes(*types[data[0] % types.size()], rest);
  return 0;
}
