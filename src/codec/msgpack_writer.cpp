// MsgpackWriter: one head a value, and what the value holds behind it.
#include "codec/msgpack_writer.hpp"

#include "base/utf8.hpp"

namespace wirecall::msgpack {

void MsgpackWriter::reset(Buffer& out) {
  out_ = &out;
  levels_.clear();
  if (failed()) [[unlikely]]
    clear_failure();
}

inline char* MsgpackWriter::open(std::size_t bytes) {
  if (!levels_.empty() && !levels_.back().map) ++levels_.back().count;
  return out_->reserve(bytes);
}

bool MsgpackWriter::fits(std::size_t size) {
  if (size <= std::numeric_limits<std::uint32_t>::max()) return true;
  fail("a value has more than 4294967295 bytes or elements, which MessagePack cannot express");
  return false;
}

void MsgpackWriter::null() {
  char* const to = open(1);
  *to = '\xC0';
  close(to + 1);
}

void MsgpackWriter::boolean(bool value) {
  char* const to = open(1);
  *to = value ? '\xC3' : '\xC2';
  close(to + 1);
}

void MsgpackWriter::integer(std::int64_t value) { close(write_integer(open(kHeadBytesMax), value)); }
void MsgpackWriter::unsigned_integer(std::uint64_t value) { close(write_unsigned(open(kHeadBytesMax), value)); }
void MsgpackWriter::number(double value) { close(write_float64(open(kHeadBytesMax), value)); }
void MsgpackWriter::number(float value) { close(write_float32(open(kHeadBytesMax), value)); }

void MsgpackWriter::number_text(std::string_view text) {
  static_cast<void>(open(kHeadBytesMax));
  if (const std::string_view why = codec::append_number(*out_, text); !why.empty()) fail(why);
}

void MsgpackWriter::append(std::string_view utf8) {
  const char* const end = utf8.data() + utf8.size();
  if (find_no_utf8(utf8.data(), end) != end) fail("a string is not UTF-8");
  if (fits(utf8.size())) codec::append_string(*out_, utf8);
}

void MsgpackWriter::string(std::string_view utf8) {
  static_cast<void>(open(0));
  append(utf8);
}

void MsgpackWriter::key(std::string_view utf8) {
  if (!levels_.empty()) ++levels_.back().count;
  append(utf8);
}

void MsgpackWriter::append_data(std::span<const std::byte> data) {
  out_->append({reinterpret_cast<const char*>(data.data()), data.size()});
}

void MsgpackWriter::bytes(std::span<const std::byte> data) {
  if (!fits(data.size())) return null();
  close(write_size(open(kHeadBytesMax), kBinaryForms, static_cast<std::uint32_t>(data.size())));
  append_data(data);
}

void MsgpackWriter::extension_in_parts(std::int8_t type, std::span<const std::byte> first,
                                       std::span<const std::byte> second) {
  const std::size_t size = first.size() + second.size();
  if (!fits(size)) return null();
  close(write_extension_head(open(kHeadBytesMax + size), type, static_cast<std::uint32_t>(size)));
  append_data(first);
  append_data(second);
}

void MsgpackWriter::begin_array(std::size_t size) { begin(kArrayForms, size, false); }
void MsgpackWriter::begin_object(std::size_t size) { begin(kMapForms, size, true); }
void MsgpackWriter::end_array() { end(kArrayForms); }
void MsgpackWriter::end_object() { end(kMapForms); }

void MsgpackWriter::begin(const SizeForms& forms, std::size_t size, bool map) {
  char* const to = open(kHeadBytesMax);
  const std::size_t begin = out_->size();
  levels_.push_back({begin, size, 0, map});
  // Where the size is not known the shortest head is the likeliest.
  close(write_size(to, forms, size == kUnknownSize || !fits(size) ? 0 : static_cast<std::uint32_t>(size)));
}

void MsgpackWriter::end(const SizeForms& forms) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.expected != kUnknownSize) {
    if (level.count != level.expected) fail("an array or object does not hold as many values as was announced");
    return;
  }
  if (!fits(level.count)) return;
  char head[kHeadBytesMax];
  const auto size = static_cast<std::size_t>(write_size(head, forms, static_cast<std::uint32_t>(level.count)) - head);
  static_cast<void>(out_->reserve(size));
  char* const to = out_->data() + level.begin;
  const char* const content = to + 1;
  const auto bytes = static_cast<std::size_t>(out_->data() + out_->size() - content);
  if (size != 1) std::memmove(to + size, content, bytes);
  std::memcpy(to, head, size);
  close(to + size + bytes);
}

void MsgpackWriter::encoded(std::string_view value) {
  static_cast<void>(open(0));
  out_->append(value);
}

void MsgpackWriter::json(std::string_view text) {
  static_cast<void>(open(0));
  if (from_json_ == nullptr) from_json_ = std::make_unique<codec::JsonToMsgpack>();
  Buffer padded{text};
  if (const codec::Transcoded result = (*from_json_)(padded.padded(), *out_); !result.done()) fail(result.why);
}

}  // namespace wirecall::msgpack
