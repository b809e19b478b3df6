// See protobuf_wire.hpp.
#include "codec/protobuf_wire.hpp"

#include <array>
#include <bit>
#include <limits>

namespace wirecall::protobuf_wire {
namespace {

/// As deep as protobuf's own libraries read.
constexpr std::size_t kGroupsMax = 100;
/// Of memory that is kept from message to message.
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;

}  // namespace

bool FieldReader::next(Field& out) noexcept {
  while (at_ != end_ && !malformed_) {
    if (!read_field(out)) {
      malformed_ = true;
      break;
    }
    const auto type = static_cast<WireType>(out.tag & 7);
    if (type != WireType::group && type != WireType::group_end) return true;
    malformed_ = type == WireType::group_end || !pass_group(out.number());
  }
  return false;
}

bool FieldReader::read_varint(std::uint64_t& out) noexcept {
  if (at_ != end_ && static_cast<signed char>(*at_) >= 0) {
    out = static_cast<unsigned char>(*at_++);
    return true;
  }
  return pass_varint(at_, end_, out);
}

/// A field, or what begins or ends a group.
bool FieldReader::read_field(Field& out) noexcept {
  const char* const begin = at_;
  std::uint64_t tag = 0;
  if (!read_varint(tag) || tag > std::numeric_limits<std::uint32_t>::max() || tag < 8) return false;
  out.tag = static_cast<std::uint32_t>(tag);
  out.begin = begin;
  out.content = {};
  const auto left = [&] { return static_cast<std::size_t>(end_ - at_); };
  switch (static_cast<WireType>(tag & 7)) {
    case WireType::varint: return read_varint(out.value);
    case WireType::fixed64:
      if (left() < sizeof(std::uint64_t)) return false;
      out.value = load_little_endian<std::uint64_t>(at_);
      at_ += sizeof(std::uint64_t);
      return true;
    case WireType::fixed32:
      if (left() < sizeof(std::uint32_t)) return false;
      out.value = load_little_endian<std::uint32_t>(at_);
      at_ += sizeof(std::uint32_t);
      return true;
    case WireType::length: {
      std::uint64_t size = 0;
      if (!read_varint(size) || size > left()) return false;
      out.content = {at_, static_cast<std::size_t>(size)};
      at_ += size;
      return true;
    }
    case WireType::group:
    case WireType::group_end: return true;
  }
  return false;
}

bool FieldReader::pass_group(std::uint32_t number) noexcept {
  std::array<std::uint32_t, kGroupsMax> open{number};
  std::size_t count = 1;
  Field field;
  while (at_ != end_ && read_field(field)) {
    switch (static_cast<WireType>(field.tag & 7)) {
      case WireType::group:
        if (count == kGroupsMax) break;
        open[count++] = field.number();
        continue;
      case WireType::group_end:
        if (field.number() != open[count - 1]) break;
        if (--count == 0) return true;
        continue;
      default: continue;
    }
    break;
  }
  return false;
}

std::size_t varint_bytes(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

char* write_varint(char* to, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// ---- writing ----

void MessageWriter::reset() noexcept {
  if (text_.capacity() > kKeptBytesMax) text_.release();
  text_.clear();
  if (lengths_.capacity() * sizeof(Length) > kKeptBytesMax) lengths_ = {};
  lengths_.clear();
  opened_.clear();
  length_bytes_ = 0;
}

void MessageWriter::begin(std::uint32_t field) {
  tag(field, WireType::length);
  opened_.push_back(lengths_.size());
  lengths_.push_back({text_.size(), length_bytes_});
}

void MessageWriter::end() noexcept {
  Length& length = lengths_[opened_.back()];
  opened_.pop_back();
  length.bytes = text_.size() - length.at + length_bytes_ - length.bytes;
  length_bytes_ += varint_bytes(length.bytes);
}

void MessageWriter::varint(std::uint32_t field, std::uint64_t value) {
  tag(field, WireType::varint);
  raw_varint(value);
}

void MessageWriter::fixed64(std::uint32_t field, std::uint64_t bits) {
  tag(field, WireType::fixed64);
  raw_fixed64(bits);
}

void MessageWriter::bytes(std::uint32_t field, std::string_view content) {
  tag(field, WireType::length);
  raw_varint(content.size());
  text_.append(content);
}

void MessageWriter::only_varint(std::uint32_t field, std::uint32_t inner, std::uint64_t value) {
  tag(field, WireType::length);
  raw_varint(varint_bytes(tag_of(inner, WireType::varint)) + varint_bytes(value));
  varint(inner, value);
}

void MessageWriter::only_fixed64(std::uint32_t field, std::uint32_t inner, std::uint64_t bits) {
  tag(field, WireType::length);
  raw_varint(varint_bytes(tag_of(inner, WireType::fixed64)) + sizeof bits);
  fixed64(inner, bits);
}

void MessageWriter::only_bytes(std::uint32_t field, std::uint32_t inner, std::string_view content) {
  tag(field, WireType::length);
  raw_varint(varint_bytes(tag_of(inner, WireType::length)) + varint_bytes(content.size()) + content.size());
  bytes(inner, content);
}

void MessageWriter::finish(Buffer& out) {
  const std::string_view text = text_.view();
  static_cast<void>(out.reserve(text.size() + length_bytes_));
  std::size_t from = 0;
  for (const Length& length : lengths_) {
    out.append(text.substr(from, length.at - from));
    out.set_end(write_varint(out.reserve(kVarintBytesMax), length.bytes));
    from = length.at;
  }
  out.append(text.substr(from));
  reset();
}

void MessageWriter::tag(std::uint32_t field, WireType type) {
  if (field != kNoField) raw_varint(tag_of(field, type));
}

void MessageWriter::raw_varint(std::uint64_t value) {
  text_.set_end(write_varint(text_.reserve(kVarintBytesMax), value));
}

void MessageWriter::raw_fixed64(std::uint64_t bits) {
  if constexpr (std::endian::native != std::endian::little) bits = std::byteswap(bits);
  std::memcpy(text_.reserve(sizeof bits), &bits, sizeof bits);
  text_.grow(sizeof bits);
}

}  // namespace wirecall::protobuf_wire
