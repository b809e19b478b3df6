// What all codecs share: how a Reader remembers its failure, what a codec without extensions says, and the codecs
// themselves, which only put a scanner, a reader and a writer together.
#include "wirecall/codec.hpp"

#include "codec/binary_reader.hpp"
#include "codec/binary_writer.hpp"
#include "codec/cbor_scan.hpp"
#include "codec/decode_failure.hpp"
#include "codec/extensions.hpp"
#include "codec/json_reader.hpp"
#include "codec/json_scan.hpp"
#include "codec/json_writer.hpp"
#include "codec/msgpack_scan.hpp"
#include "codec/protobuf_reader.hpp"
#include "codec/protobuf_regular.hpp"
#include "codec/protobuf_writer.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

/// Bytes of the offending value that a failure shows, the dots that stand for the rest included.
static constexpr std::size_t kGotBytesMax = 80;

std::string codec::shorten(std::string text) {
  if (text.size() <= kGotBytesMax) return text;
  std::size_t size = kGotBytesMax - 3;
  // Not in the middle of a character, of which a text that is not UTF-8 may have none.
  while (size != 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  text.resize(size);
  return text += "...";
}

std::string codec::shown(const Value& value) {
  try {
    return shorten(value.dump());
  } catch (const LocalError&) {
    return "a value without JSON text";
  }
}

namespace {

template <auto scan_value, class ReaderOf, class WriterOf>
class CodecOf final : public Codec {
 public:
  explicit CodecOf(std::string_view name) noexcept : name_(name) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] Scan scan(std::string_view bytes, std::uint32_t depth_max) const noexcept override {
    return scan_value(bytes, depth_max);
  }
  [[nodiscard]] std::unique_ptr<Reader> reader() const override { return std::make_unique<ReaderOf>(); }
  [[nodiscard]] std::unique_ptr<Writer> writer() const override { return std::make_unique<WriterOf>(); }

 private:
  std::string_view name_;
};

}  // namespace

bool Reader::read_extension(std::int8_t&, std::span<const std::byte>&) { return fail("extension"); }

// A JSON object that is none, as nearly all are not, is known by its first bytes.
bool Reader::read_own_form(std::int8_t type, std::span<const std::byte>& data) {
  const char* const start = mark();
  if (json_) {
    if (start[0] != '{' || (start[1] == '"' && start[2] != '$')) return false;
    std::string_view name;
    const bool is_named = begin_object() && next_member(name) && name == codec::name_of_extension(type);
    rewind(start);
    if (!is_named) return false;
  } else if (kind() != ValueKind::extension) {
    return false;
  }
  std::int8_t found = 0;
  if (read_extension(found, data) && found == type) return took_own_form();
  clear_failure();
  rewind(start);
  return false;
}

bool Reader::read_array_of_own_form(std::string_view value, std::int8_t type, std::span<const std::byte>& data) {
  if (json_ && value.front() != '[') return false;
  reset(value);
  if (kind() != ValueKind::array) return false;
  static_cast<void>(begin_array());
  if (next_element() && read_own_form(type, data) && !next_element()) return true;
  own_form_ = false;
  return false;
}

bool Reader::read_json(std::string_view&) { return fail("value that JSON can express"); }

void Writer::extension_in_parts(std::int8_t type, std::span<const std::byte> first, std::span<const std::byte> second) {
  std::vector<std::byte> both{first.begin(), first.end()};
  both.insert(both.end(), second.begin(), second.end());
  extension(type, both);
}

void Writer::extension(std::int8_t, std::span<const std::byte>) {
  fail("a value is of an extension type, which this encoding cannot express");
  null();
}

bool Reader::fail(std::string_view expected) {
  return fail(DecodeFailure{std::string{expected}, codec::shorten(json(kGotBytesMax + 1)), {}, {}});
}

bool Reader::fail_missing(std::string_view expected) {
  return fail(DecodeFailure{std::string{expected}, "nothing", {}, {}});
}

bool Reader::fail(DecodeFailure failure) {
  failure_ = std::make_unique<DecodeFailure>(std::move(failure));
  return false;
}

bool Reader::failed_at(std::string_view member) {
  failure_->path.emplace_back(std::in_place_type<std::string>, member);
  return false;
}

bool Reader::failed_at(std::size_t position) {
  failure_->path.emplace_back(position);
  return false;
}

const Codec& json_codec() noexcept {
  static const CodecOf<json::scan, json::JsonReader, json::JsonWriter> codec{"json"};
  return codec;
}

const Codec& msgpack_codec() noexcept {
  static const CodecOf<msgpack::scan, msgpack::MsgpackReader, msgpack::MsgpackWriter> codec{"msgpack"};
  return codec;
}

const Codec& cbor_codec() noexcept {
  static const CodecOf<cbor::scan, cbor::CborReader, cbor::CborWriter> codec{"cbor"};
  return codec;
}

const Codec& protobuf_codec() noexcept {
  static const CodecOf<protobuf_wire::scan_regular, codec::ProtobufReader, codec::ProtobufWriter> codec{"protobuf"};
  return codec;
}

}  // namespace wirecall
