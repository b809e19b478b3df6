// BinaryWriter: one head a value, and what the value holds behind it.
#include "codec/binary_writer.hpp"

#include "base/utf8.hpp"
#include "codec/cbor_format.hpp"
#include "codec/codec_time.hpp"
#include "codec/msgpack_format.hpp"

namespace wirecall::codec {

template <class Format>
void BinaryWriter<Format>::reset(Buffer& out) {
  out_ = &out;
  levels_.clear();
  forget();
}

template <class Format>
inline char* BinaryWriter<Format>::open(std::size_t bytes) {
  if (!levels_.empty() && !levels_.back().map) ++levels_.back().count;
  return out_->reserve(bytes);
}

template <class Format>
bool BinaryWriter<Format>::fits(std::size_t size) {
  if (size <= Format::kSizeMax) return true;
  fail(Format::kSizeBeyond);
  return false;
}

template <class Format>
void BinaryWriter<Format>::null() {
  char* const to = open(1);
  *to = Format::kNil;
  close(to + 1);
}

template <class Format>
void BinaryWriter<Format>::boolean(bool value) {
  char* const to = open(1);
  *to = value ? Format::kTrue : Format::kFalse;
  close(to + 1);
}

template <class Format>
void BinaryWriter<Format>::integer(std::int64_t value) {
  close(Format::write_integer(open(Format::kHeadBytesMax), value));
}
template <class Format>
void BinaryWriter<Format>::unsigned_integer(std::uint64_t value) {
  close(Format::write_unsigned(open(Format::kHeadBytesMax), value));
}
template <class Format>
void BinaryWriter<Format>::number(double value) {
  close(Format::write_float(open(Format::kHeadBytesMax), value));
}
template <class Format>
void BinaryWriter<Format>::number(float value) {
  close(Format::write_float(open(Format::kHeadBytesMax), value));
}

template <class Format>
void BinaryWriter<Format>::number_text(std::string_view text) {
  static_cast<void>(open(Format::kHeadBytesMax));
  if (const std::string_view why = append_number<Format>(*out_, text); !why.empty()) fail(why);
}

/// Copies at most 31 bytes. False where they are not all ASCII.
[[gnu::always_inline]] static inline bool copy_ascii(char* to, const char* from, std::size_t size) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
  std::uint64_t any = 0;
  // Words may overlap the one before.
  const auto copy = [&]<class Word>(Word word, std::size_t at) {
    std::memcpy(&word, from + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
    any |= word;
  };
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8) copy(std::uint64_t{}, at);
    copy(std::uint64_t{}, size - 8);
  } else if (size >= 4) {
    copy(std::uint32_t{}, 0);
    copy(std::uint32_t{}, size - 4);
  } else if (size != 0) {
    copy(std::uint8_t{}, 0);
    copy(std::uint8_t{}, size / 2);
    copy(std::uint8_t{}, size - 1);
  }
  return (any & kHighBits) == 0;
}

template <class Format>
void BinaryWriter<Format>::append(std::string_view utf8) {
  if (utf8.size() <= Format::kShortStringMax) [[likely]] {
    char* const to = out_->reserve(1 + Format::kShortStringMax);
    if (copy_ascii(to + 1, utf8.data(), utf8.size())) [[likely]] {
      *to = static_cast<char>(Format::kShortString + utf8.size());
      return close(to + 1 + utf8.size());
    }
  }
  const char* const end = utf8.data() + utf8.size();
  if (find_no_utf8(utf8.data(), end) != end) fail("a string is not UTF-8");
  if (fits(utf8.size())) append_string<Format>(*out_, utf8);
}

template <class Format>
void BinaryWriter<Format>::string(std::string_view utf8) {
  if (!levels_.empty() && !levels_.back().map) ++levels_.back().count;
  append(utf8);
}

template <class Format>
void BinaryWriter<Format>::key(std::string_view utf8) {
  if (!levels_.empty()) ++levels_.back().count;
  append(utf8);
}

template <class Format>
void BinaryWriter<Format>::append_data(std::span<const std::byte> data) {
  out_->append({reinterpret_cast<const char*>(data.data()), data.size()});
}

template <class Format>
void BinaryWriter<Format>::bytes(std::span<const std::byte> data) {
  if (!fits(data.size())) return null();
  close(Format::write_binary_head(open(Format::kHeadBytesMax), data.size()));
  append_data(data);
}

template <class Format>
void BinaryWriter<Format>::extension(std::int8_t type, std::span<const std::byte> data) {
  extension_in_parts(type, data, {});
}

template <class Format>
void BinaryWriter<Format>::extension_in_parts(std::int8_t type, std::span<const std::byte> first,
                                              std::span<const std::byte> second) {
  const std::size_t size = first.size() + second.size();
  if (!fits(size)) return null();
  if constexpr (std::is_same_v<Format, cbor::Format>) {
    if (type == kTimestampExtension) return timestamp(first, second);
  }
  close(Format::write_extension_head(open(Format::kHeadBytesMax + size), type, size));
  append_data(first);
  append_data(second);
}

/// In an encoding that has no such extension: as text, which keeps all of it.
template <class Format>
void BinaryWriter<Format>::timestamp(std::span<const std::byte> first, std::span<const std::byte> second) {
  std::vector<std::byte> data{first.begin(), first.end()};
  data.insert(data.end(), second.begin(), second.end());
  const std::string text = timestamp_text(data);
  if (text.empty()) {
    fail(kNoTimestamp);
    return null();
  }
  static_cast<void>(open(0));
  out_->push_back(cbor::kTimeTag);
  append(text);
}

template <class Format>
void BinaryWriter<Format>::begin_array(std::size_t size) {
  begin(size, false);
}
template <class Format>
void BinaryWriter<Format>::begin_object(std::size_t size) {
  begin(size, true);
}
template <class Format>
void BinaryWriter<Format>::end_array() {
  end();
}
template <class Format>
void BinaryWriter<Format>::end_object() {
  end();
}

template <class Format>
void BinaryWriter<Format>::begin(std::size_t size, bool map) {
  char* const to = open(Format::kHeadBytesMax);
  const std::size_t begin = out_->size();
  levels_.push_back({begin, size, 0, map});
  // Where the size is not known the shortest head is the likeliest.
  close(write_size(to, size == kUnknownSize || !fits(size) ? 0 : size, map));
}

template <class Format>
void BinaryWriter<Format>::end() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.expected != kUnknownSize) {
    if (level.count != level.expected) fail("an array or object does not hold as many values as was announced");
    return;
  }
  if (!fits(level.count)) return;
  char head[Format::kHeadBytesMax];
  const auto size = static_cast<std::size_t>(write_size(head, level.count, level.map) - head);
  static_cast<void>(out_->reserve(size));
  char* const to = out_->data() + level.begin;
  const char* const content = to + 1;
  const auto bytes = static_cast<std::size_t>(out_->data() + out_->size() - content);
  if (size != 1) std::memmove(to + size, content, bytes);
  std::memcpy(to, head, size);
  close(to + size + bytes);
}

template <class Format>
void BinaryWriter<Format>::encoded(std::string_view value) {
  static_cast<void>(open(0));
  out_->append(value);
}

template <class Format>
void BinaryWriter<Format>::json(std::string_view text) {
  static_cast<void>(open(0));
  if (from_json_ == nullptr) from_json_ = std::make_unique<FromJson<Format>>();
  Buffer padded{text};
  if (const Transcoded result = (*from_json_)(padded.padded(), *out_); !result.done()) fail(result.why);
}

template class BinaryWriter<msgpack::Format>;
template class BinaryWriter<cbor::Format>;

}  // namespace wirecall::codec
