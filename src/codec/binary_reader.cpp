// BinaryReader: each read looks at one head; what is rarer than a value of the asked type is below.
#include "codec/binary_reader.hpp"

#include <bit>
#include <cmath>
#include <type_traits>

#include "codec/cbor_format.hpp"
#include "codec/codec_number.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::codec {

template <class Format>
const Codec& BinaryReader<Format>::codec() const noexcept {
  return std::is_same_v<Format, cbor::Format> ? cbor_codec() : msgpack_codec();
}

template <class Format>
void BinaryReader<Format>::reset(std::string_view value) {
  arena_.rewind();
  levels_.clear();
  if (failed()) [[unlikely]]
    clear_failure();
  allow_rereading(value.size());
  start_ = at_ = value.data();
  end_ = start_ + value.size();
}

template <class Format>
ValueKind BinaryReader<Format>::kind() const {
  constexpr ValueKind kKinds[] = {ValueKind::null,   ValueKind::boolean, ValueKind::number,
                                  ValueKind::number, ValueKind::number,  ValueKind::number,
                                  ValueKind::string, ValueKind::bytes,   ValueKind::extension,
                                  ValueKind::array,  ValueKind::object,  ValueKind::extension};  // as in Type
  return kKinds[static_cast<std::size_t>(Format::read_head(at_).type)];
}

template <class Format>
bool BinaryReader<Format>::read_null() {
  if (!Format::is_nil(at_)) return false;
  at_ += Format::read_head(at_).bytes;
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_bool(bool& out) {
  const Head head = Format::read_head(at_);
  if (head.type != Type::boolean) return fail("boolean");
  out = head.value != 0;
  at_ += head.bytes;
  return true;
}

// Most integers are from 0 on and have 32 bits at most.
template <class Format>
template <class Integer>
inline bool BinaryReader<Format>::read_integer(Integer min, Integer max, Integer& out) {
  std::uint64_t number = 0;
  const std::size_t bytes = Format::unsigned_at(at_, end_, number);
  const auto value = static_cast<Integer>(number);
  if (bytes == 0 || value < min || value > max) [[unlikely]]
    return read_integer_slowly(min, max, out);
  out = value;
  at_ += bytes;
  return true;
}

template <class Format>
template <class Integer>
[[gnu::noinline]] bool BinaryReader<Format>::read_integer_slowly(Integer min, Integer max, Integer& out) {
  const Head head = Format::read_head(at_);
  if (const std::string why = integer_of(head, min, max, out); !why.empty()) return fail(why);
  at_ = Format::behind_number(at_, head);
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_int(std::int64_t min, std::int64_t max, std::int64_t& out) {
  return read_integer(min, max, out);
}
template <class Format>
bool BinaryReader<Format>::read_uint(std::uint64_t max, std::uint64_t& out) {
  return read_integer(std::uint64_t{0}, max, out);
}

template <class Format>
bool BinaryReader<Format>::read_double(double& out) {
  if (first() == Format::kFloat64) [[likely]] {
    out = std::bit_cast<double>(load_big_endian<std::uint64_t>(at_ + 1));
    at_ += 1 + sizeof out;
    return true;
  }
  const Head head = Format::read_head(at_);
  if (head.type == Type::positive) {
    out = static_cast<double>(head.value);
  } else if (head.type == Type::negative) {
    out = static_cast<double>(static_cast<std::int64_t>(head.value));
  } else if (is_real(head)) {
    out = real(head);
  } else {
    return fail("number");
  }
  at_ = Format::behind_number(at_, head);
  return true;
}

template <class Format>
bool BinaryReader<Format>::next_is_float() const {
  return is_real(Format::read_head(at_));
}

template <class Format>
bool BinaryReader<Format>::read_number_text(std::string_view& out) {
  const Head head = Format::read_head(at_);
  if (!is_integer(head) && !is_real(head)) return fail("number");
  if (is_real(head) && !std::isfinite(real(head))) return fail(kDoubleWords);
  return read_json(out);
}

template <class Format>
inline bool BinaryReader<Format>::read_short_string(std::string_view& out) noexcept {
  const std::size_t size = first() - std::size_t{Format::kShortString};
  if (size > Format::kShortStringMax) return false;
  out = {at_ + 1, size};
  at_ += 1 + size;
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_string(std::string_view& out) {
  if (read_short_string(out)) [[likely]]
    return true;
  const Head head = Format::read_head(at_);
  if (head.type != Type::string) return fail("string");
  out = Format::content(at_, head, arena_);
  at_ = Format::behind(at_, head);
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_bytes(std::span<const std::byte>& out) {
  const Head head = Format::read_head(at_);
  if (head.type != Type::binary) return fail("bytes");
  out = std::as_bytes(std::span{Format::content(at_, head, arena_)});
  at_ = Format::behind(at_, head);
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_extension(std::int8_t& type, std::span<const std::byte>& data) {
  const Head head = Format::read_head(at_);
  if (head.type != Type::extension) return fail("extension");
  type = head.extension;
  data = std::as_bytes(std::span{Format::content(at_, head, arena_)});
  at_ = Format::behind(at_, head);
  return true;
}

template <class Format>
bool BinaryReader<Format>::read_array_of_own_form(std::string_view value, std::int8_t type,
                                                  std::span<const std::byte>& data) {
  const std::string_view content = Format::only_extension(value.data(), value.data() + value.size(), type);
  if (content.empty()) return Reader::read_array_of_own_form(value, type, data);
  data = std::as_bytes(std::span{content});
  return took_own_form();
}

/// An array or map whose head is one byte.
template <class Format>
inline bool BinaryReader<Format>::begin_short(unsigned char form, bool map) {
  const std::size_t count = first() - std::size_t{form};
  if (count > Format::kShortCountMax) return false;
  levels_.push_back({at_, nullptr, count, map});
  ++at_;
  return true;
}

template <class Format>
bool BinaryReader<Format>::begin_array() {
  if (begin_short(Format::kShortArray, false)) [[likely]]
    return true;
  const Head head = Format::read_head(at_);
  if (head.type != Type::array) return fail("array");
  levels_.push_back({at_, nullptr, head.value, false});
  at_ += head.bytes;
  return true;
}

template <class Format>
std::size_t BinaryReader<Format>::elements_left() const {
  const std::uint64_t left = levels_.back().left;
  return left == kIndefinite ? 0 : static_cast<std::size_t>(left);
}

template <class Format>
bool BinaryReader<Format>::next_element() {
  Level& level = levels_.back();
  if (Format::at_end(at_, level.left)) {
    levels_.pop_back();
    return false;
  }
  level.current = at_;
  return true;
}

template <class Format>
bool BinaryReader<Format>::begin_object() {
  if (begin_short(Format::kShortMap, true)) [[likely]]
    return true;
  const Head head = Format::read_head(at_);
  if (head.type != Type::map) return fail("object");
  levels_.push_back({at_, nullptr, head.value, true});
  at_ += head.bytes;
  return true;
}

template <class Format>
bool BinaryReader<Format>::next_member(std::string_view& name) {
  Level& level = levels_.back();
  if (Format::at_end(at_, level.left)) {
    levels_.pop_back();
    return false;
  }
  if (!read_short_string(name)) [[unlikely]]
    name = unusual_name();
  level.current = at_;
  return true;
}

template <class Format>
[[gnu::noinline]] std::string_view BinaryReader<Format>::unusual_name() {
  const char* const p = at_;
  const Head head = Format::read_head(p);
  if (head.type == Type::string) {
    at_ = Format::behind(p, head);
    return Format::content(p, head, arena_);
  }
  Buffer text;
  to_json_.describe(p, text, kNoSizeMax);
  at_ = Format::skip_value(p);
  return kept(text.view());
}

template <class Format>
std::string_view BinaryReader<Format>::skip() {
  const char* const value = at_;
  at_ = Format::skip_value(at_);
  return {value, static_cast<std::size_t>(at_ - value)};
}

template <class Format>
bool BinaryReader<Format>::read_json(std::string_view& out) {
  const char* const end = Format::skip_value(at_);
  Buffer text;
  const Transcoded result = to_json_({at_, static_cast<std::size_t>(end - at_)}, text);
  if (!result.done()) return fail("value that JSON can express");
  out = kept(text.view());
  at_ = end;
  return true;
}

template <class Format>
std::string BinaryReader<Format>::json(std::size_t bytes_max) {
  if (at_ == end_) return "nothing";  // somebody fails after the last value
  Buffer text;
  to_json_.describe(at_, text, bytes_max);
  return std::string{text.view().substr(0, bytes_max)};
}

template <class Format>
std::string_view BinaryReader<Format>::kept(std::string_view text) {
  char* const to = arena_.allocate(text.size());
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return {to, text.size()};
}

// Nearly always back to where the innermost value began that has not ended.
template <class Format>
void BinaryReader<Format>::rewind(const char* mark) noexcept {
  while (!levels_.empty() && levels_.back().begin >= mark) levels_.pop_back();
  if (levels_.empty() ? mark != start_ : levels_.back().current != mark) return locate(mark);
  at_ = mark;
}

// Any other value from the first on. The levels it is in were open when the mark was taken, so no memory is asked for.
template <class Format>
void BinaryReader<Format>::locate(const char* mark) noexcept {
  levels_.clear();
  at_ = mark;
  for (const char* p = start_; p != mark && mark != end_;) {
    const Head head = Format::read_head(p);
    Level level{p, nullptr, head.value, head.type == Type::map};
    for (p += head.bytes; !Format::at_end(p, level.left); p = Format::skip_value(p)) {
      if (level.map) p = Format::skip_value(p);
      level.current = p;
      if (Format::skip_value(p) > mark) break;
    }
    levels_.push_back(level);
  }
}

template class BinaryReader<msgpack::Format>;
template class BinaryReader<cbor::Format>;

}  // namespace wirecall::codec
