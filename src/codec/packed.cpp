// The compiled side of packed values: layouts, strings, adapted values, and what is said of bytes that do not fit.
#include "wirecall/packed.hpp"

#include <algorithm>
#include <memory>

#include "base/utf8.hpp"
#include "codec/decode_failure.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::detail {

// ---- layouts ----

// FNV-1a: whoever can make two layouts of one hash can send any bytes as well, which are checked.
static std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

static bool is_plain(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, is_name_byte);
}

static void append_name(std::string& text, std::string_view name) {
  text += is_plain(name) ? std::string{name} : to_json(name);
}

void LayoutText::append_number(bool is_floating, bool is_signed, std::size_t bytes) {
  text_ += is_floating ? 'f' : is_signed ? 'i' : 'u';
  text_ += std::to_string(bytes * 8);
}

void LayoutText::append_period(std::intmax_t numerator, std::intmax_t denominator) {
  text_ += '<' + std::to_string(numerator) + '/' + std::to_string(denominator) + '>';
}

void LayoutText::append_count(std::size_t count) { text_ += '[' + std::to_string(count) + ']'; }

void LayoutText::append_enumerators(std::span<const EnumEntry> entries) {
  char before = '<';
  for (const EnumEntry& entry : entries) {
    text_ += before;
    append_name(text_, entry.name);
    text_ += '=' + std::to_string(entry.value);
    before = ',';
  }
  text_ += '>';
}

void LayoutText::append_list(char open, std::span<const LayoutFunction> types, char close) {
  text_ += open;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i != 0) text_ += ',';
    types[i](*this);
  }
  text_ += close;
}

void LayoutText::append_struct(const TypeInfo& type, std::span<const LayoutFunction> types) {
  if (const auto found = std::ranges::find(structs_, &type); found != structs_.end()) {
    text_ += '#' + std::to_string(found - structs_.begin());
    return;
  }
  structs_.push_back(&type);
  const std::size_t lacking = shorter_.type == &type ? shorter_.lacking : 0;
  text_ += '{';
  for (std::size_t i = 0; i < types.size() - lacking; ++i) {
    if (i != 0) text_ += ',';
    append_name(text_, type.members[i].name);
    text_ += ':';
    types[i](*this);
  }
  text_ += '}';
}

Layout::Layout(std::string text) : text_(std::move(text)), hash_(hash_of(text_)) {}

Layout::Layout(LayoutFunction append) {
  LayoutText whole;
  append(whole);
  text_ = std::move(whole.text());
  hash_ = hash_of(text_);
  for (const TypeInfo* const type : whole.structs()) {
    for (std::size_t lacking = 1; lacking <= optional_at_end(type->members); ++lacking) {
      const ShorterStruct shorter{.type = type, .lacking = lacking};
      LayoutText older{shorter};
      append(older);
      older_.push_back({.hash = hash_of(older.text()), .shorter = shorter});
    }
  }
}

const ShorterStruct* Layout::find_older(std::uint64_t hash) const noexcept {
  const auto found = std::ranges::find(older_, hash, &Older::hash);
  return found == older_.end() ? nullptr : &found->shorter;
}

bool is_enumerator(std::span<const EnumEntry> entries, std::int64_t value) noexcept {
  return std::ranges::find(entries, value, &EnumEntry::value) != entries.end();
}

// ---- PackedOutput ----

void PackedOutput::long_count(std::size_t count) {
  char* to = out_.reserve(kCountBytesMax);
  for (; count >= 0x80; count >>= 7) *to++ = static_cast<char>(count | 0x80);
  *to++ = static_cast<char>(count);
  out_.set_end(to);
}

void PackedOutput::string(std::string_view utf8) {
  if (!is_utf8(utf8.data(), utf8.size(), utf8.data() + utf8.size())) fail("a string is not UTF-8");
  count(utf8.size());
  out_.append(utf8);
}

Writer& PackedOutput::begin_adapted() {
  if (writer_ == nullptr) writer_ = msgpack_codec().writer();
  adapted_.clear();
  writer_->reset(adapted_);
  return *writer_;
}

void PackedOutput::end_adapted() {
  if (writer_->failed()) fail(writer_->failure());
  count(adapted_.size());
  out_.append(adapted_.view());
}

void PackedOutput::finish() {
  finished_ = failure_.empty();
  if (!finished_) throw LocalError{ErrorCode::internal_error, std::move(failure_)};
}

// ---- PackedInput ----

// Of an older layout, or another.
bool PackedInput::begin_otherwise(const Layout& layout) {
  std::uint64_t hash = 0;
  if (left() < sizeof hash) return fail("the hash of a layout", std::to_string(left()) + " bytes");
  std::memcpy(&hash, at_, sizeof hash);
  at_ += sizeof hash;
  older_ = layout.find_older(in_wire_order(hash));
  if (older_ != nullptr) return true;
  failure_ = std::make_unique<DecodeFailure>();
  failure_->layout = layout.text();
  return false;
}

Error packed_error(const DecodeFailure& failure) { return codec::decode_error(failure); }

std::optional<Error> with_own_layout(const Error& error, std::string_view layout) {
  struct Layouts {
    std::string layout;
  };
  if (error.code() != static_cast<int>(ErrorCode::invalid_params)) return std::nullopt;
  const auto theirs = from_json<Layouts>(error.data());
  if (!theirs) return std::nullopt;
  return Error{error.code(), error.message(),
               R"({"layout":)" + to_json(theirs->layout) + R"(,"own":)" + to_json(layout) + '}'};
}

bool PackedInput::fail_further() { return fail("the end of the value", std::to_string(left()) + " further bytes"); }

bool PackedInput::long_count(std::size_t& out) {
  out = 0;
  for (unsigned shift = 0; at_ != end_ && shift < 63; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at_++);
    out |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return out <= left() || fail_count();
  }
  return fail_count();
}

bool PackedInput::bytes(std::span<const std::byte>& out) {
  std::size_t size = 0;
  if (!count(size)) return false;
  out = {reinterpret_cast<const std::byte*>(at_), size};
  at_ += size;
  return true;
}

bool PackedInput::string(std::string_view& utf8) {
  std::size_t size = 0;
  if (!count(size)) return false;
  if (!is_utf8(at_, size, end_)) return fail("string", "bytes that are not UTF-8");
  utf8 = {at_, size};
  at_ += size;
  return true;
}

Reader* PackedInput::begin_adapted() {
  std::span<const std::byte> value;
  if (!bytes(value)) return nullptr;
  const std::string_view text{reinterpret_cast<const char*>(value.data()), value.size()};
  const Scan scan = msgpack_codec().scan(text, depth_left_);
  if (scan.status == ScanStatus::too_deep) {
    fail_depth();
    return nullptr;
  }
  if (scan.status != ScanStatus::complete || scan.offset != text.size()) {
    fail("a value of MessagePack", std::to_string(text.size()) + " other bytes");
    return nullptr;
  }
  if (reader_ == nullptr) reader_ = msgpack_codec().reader();
  reader_->reset(text);
  return reader_.get();
}

bool PackedInput::take_failure(Reader& reader) {
  failure_ = std::make_unique<DecodeFailure>(reader.take_failure());
  return false;
}

bool PackedInput::fail(std::string expected, std::string got) {
  failure_ = std::make_unique<DecodeFailure>();
  failure_->expected = std::move(expected);
  failure_->got = std::move(got);
  return false;
}

bool PackedInput::fail_short(const TypeInfo& type) { return fail(describe(type), "the end of the bytes"); }
bool PackedInput::fail_count() { return fail("elements", "a count of more than there are bytes for"); }
bool PackedInput::fail_byte(const TypeInfo& type) {
  return fail(describe(type), "the byte " + std::to_string(static_cast<unsigned char>(*at_)));
}
bool PackedInput::fail_depth() { return fail("a value that nests less deep", "more levels than limits.depth"); }
bool PackedInput::fail_enumerator(const TypeInfo& type, std::int64_t value) {
  return fail(describe(type), std::to_string(value));
}
bool PackedInput::fail_repeated() { return fail("member given once", "a key for the second time"); }

bool PackedInput::fail_limits(const MemberInfo& member, EncodeFunction encode, const void* value) {
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  encode(*writer, value);
  return fail(codec::limit_words(*member.type, *member.about), codec::shorten(std::string{text.view()}));
}

bool PackedInput::failed_at(std::string_view member) {
  failure_->path.emplace_back(std::string{member});
  return false;
}
bool PackedInput::failed_at(std::size_t position) {
  failure_->path.emplace_back(position);
  return false;
}

}  // namespace wirecall::detail

namespace wirecall {

bool Writer::write_packed(const void* value, const TypeInfo& type) {
  const detail::ResultPacking& packing = *std::exchange(packing_, nullptr);
  if (packing.type != &type) return false;
  detail::write_packed(*this, packing.layout(), [&](detail::PackedOutput& output) { packing.pack(output, value); });
  return true;
}

bool Writer::packs_integer(std::int64_t value) {
  if (packing_ == nullptr || packing_->integer_bytes == 0) return false;
  const detail::PackedInteger packed{*std::exchange(packing_, nullptr), value};
  extension(kPackedExtension, std::as_bytes(std::span{packed.view()}));
  return true;
}

}  // namespace wirecall
