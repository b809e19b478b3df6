// The compiled side of decode and encode: the loops over members, elements and alternatives, enum names, map keys, and
// the texts that from_json and to_json read and write. Everything here works on TypeInfo and function pointers.
#include "wirecall/reflect.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/short_names.hpp"
#include "codec/codec_number.hpp"
#include "codec/decode_failure.hpp"

namespace wirecall {

// Its members; `also` is written where there is more.
static void write_failure(Writer& writer, const DecodeFailure& failure) {
  if (!failure.layout.empty()) {
    writer.begin_object(1);
    writer.key("layout");
    writer.string(failure.layout);
    return writer.end_object();
  }
  writer.begin_object(3 + (failure.meant.empty() ? 0 : 1) + (failure.also.empty() ? 0 : 1));
  writer.key("loc");
  writer.begin_array(failure.path.size());
  for (auto step = failure.path.rbegin(); step != failure.path.rend(); ++step) {
    if (const auto* name = std::get_if<std::string>(&*step)) {
      writer.string(*name);
    } else {
      writer.unsigned_integer(std::get<std::size_t>(*step));
    }
  }
  writer.end_array();
  writer.key("expected");
  writer.string(failure.expected);
  writer.key("got");
  writer.string(failure.got);
  if (!failure.meant.empty()) {
    writer.key("did_you_mean");
    writer.string(failure.meant);
  }
  if (!failure.also.empty()) {
    writer.key("also");
    writer.begin_array(failure.also.size());
    for (const DecodeFailure& further : failure.also) write_failure(writer, further);
    writer.end_array();
  }
  writer.end_object();
}

Error decode_error(const Reader& reader) { return codec::decode_error(reader.failure()); }

Error codec::decode_error(const DecodeFailure& failure) {
  Buffer data;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(data);
  write_failure(*writer, failure);
  return Error::with_data(ErrorCode::invalid_params, std::string{data.view()});
}

static std::string number_words(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string codec::limit_words(const TypeInfo& type, const About& about) {
  const TypeInfo& value = type.kind == TypeKind::optional ? *type.types[0] : type;
  const bool is_number = value.kind == TypeKind::integer || value.kind == TypeKind::number;
  constexpr About kNothing{.member = {}};
  const bool has_least = is_number ? about.minimum != kNothing.minimum : about.length_min != kNothing.length_min;
  const bool has_most = is_number ? about.maximum != kNothing.maximum : about.length_max != kNothing.length_max;
  const std::string least = is_number ? number_words(about.minimum) : std::to_string(about.length_min);
  const std::string most = is_number ? number_words(about.maximum) : std::to_string(about.length_max);
  std::string words = describe(value);
  if (!is_number) words += " of length";
  if (has_least && has_most) return words + (is_number ? " from " : " ") + least + " to " + most;
  return words + (has_least ? " at least " + least : " at most " + most);
}

namespace detail {

constexpr std::size_t kNoMember = static_cast<std::size_t>(-1);

/// Peers mostly send members in the order of declaration, so the search begins where that puts the next one.
static std::size_t find_member(std::span<const MemberInfo> members, std::string_view name,
                               std::size_t likely) noexcept {
  if (likely < members.size() && same_name(members[likely].name, name)) [[likely]]
    return likely;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (same_name(members[i].name, name)) return i;
  }
  return kNoMember;
}

static bool decode_member(Reader& reader, const MemberInfo& member, DecodeFunction decode, LimitFunction limit,
                          void* at) {
  if (limit == nullptr) return decode(reader, at);
  const char* const start = reader.mark();
  if (!decode(reader, at)) return false;
  if (limit(at, *member.about)) return true;
  reader.rewind(start);
  return reader.fail(codec::limit_words(*member.type, *member.about));
}

/// Goes back to `start`, unless too much has been read in vain already.
static bool reread_from(Reader& reader, const char* start) {
  constexpr std::size_t kLeastCost = 16;  // an attempt costs something even if it fails at the first byte
  const auto bytes = static_cast<std::size_t>(reader.mark() - start);
  reader.rewind(start);
  return reader.may_reread(bytes + kLeastCost);
}

/// The members of a struct, or of one behind a pointer or optional; empty for other types.
static std::span<const MemberInfo> members_of(const TypeInfo& type) noexcept {
  return type.kind == TypeKind::optional ? members_of(*type.types[0]) : type.members;
}

/// Of the alternatives in `candidates`, those structs none of whose required members is missing from the object that
/// comes next, and all that are no structs.
static std::uint64_t have_their_members(Reader& reader, const TypeInfo& type, std::uint64_t candidates) {
  const char* const start = reader.mark();
  std::array<std::uint64_t, kAlternativesMax> seen{};
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    for (std::uint64_t left = candidates; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      const std::size_t member = find_member(members_of(*type.types[i]), name, 0);
      if (member != kNoMember) seen[i] |= std::uint64_t{1} << member;
    }
    reader.skip();
  }
  for (std::uint64_t left = candidates; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const std::span<const MemberInfo> members = members_of(*type.types[i]);
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (members[m].required && (seen[i] >> m & 1) == 0) candidates &= ~(std::uint64_t{1} << i);
    }
  }
  return reread_from(reader, start) ? candidates : 0;
}

/// One bit for each alternative that the next value may be, as far as can be told without decoding it.
static std::uint64_t find_candidates(Reader& reader, const TypeInfo& type) {
  const ValueKind kind = reader.kind();
  std::uint64_t candidates = 0;
  int structs = 0;
  for (std::size_t i = 0; i < type.types.size(); ++i) {
    if (!accepts(*type.types[i], kind)) continue;
    candidates |= std::uint64_t{1} << i;
    if (!members_of(*type.types[i]).empty()) ++structs;
  }
  return kind == ValueKind::object && structs > 1 ? have_their_members(reader, type, candidates) : candidates;
}

/// An array of exactly type.length elements, of which `decode_element` decodes the one with the position it is given.
template <class DecodeElement>
static bool decode_elements(Reader& reader, const TypeInfo& type, const DecodeElement& decode_element) {
  const char* const start = reader.mark();
  if (!reader.begin_array()) return fail_as(reader, type);
  for (std::size_t i = 0; i < type.length; ++i) {
    if (!reader.next_element()) {
      reader.fail_missing(describe(*type.types[type.kind == TypeKind::tuple ? i : 0]));
      return reader.failed_at(i);
    }
    if (!decode_element(i)) return reader.failed_at(i);
  }
  if (!reader.next_element()) return true;
  reader.rewind(start);
  return fail_as(reader, type);
}

static bool find_enumerator(std::span<const EnumEntry> entries, std::string_view name, std::int64_t& out) noexcept {
  const auto found = std::ranges::find(entries, name, &EnumEntry::name);
  if (found == entries.end()) return false;
  out = found->value;
  return true;
}

template <class Integer>
static bool whole_number(std::string_view text, Integer& out) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

bool decode_members(Reader& reader, std::span<const MemberInfo> members, const DecodeFunction* decode,
                    const LimitFunction* limits, void* const* at) {
  if (!reader.begin_object()) return false;
  static_assert(kMembersMax <= 64);
  std::uint64_t seen = 0;
  std::size_t likely = 0;
  std::string_view name;
  while (reader.next_member(name)) {
    const std::size_t i = find_member(members, name, likely);
    if (i == kNoMember) {
      reader.skip();
      continue;
    }
    if ((seen >> i & 1) != 0) return fail_repeated(reader, name);
    seen |= std::uint64_t{1} << i;
    likely = i + 1;
    if (!decode_member(reader, members[i], decode[i], limits == nullptr ? nullptr : limits[i], at[i])) {
      return reader.failed_at(members[i].name);
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].required || (seen >> i & 1) != 0) continue;
    reader.fail_missing(describe(*members[i].type));
    return reader.failed_at(members[i].name);
  }
  return true;
}

bool decode_tuple(Reader& reader, const TypeInfo& type, const DecodeFunction* decode, void* const* at) {
  return decode_elements(reader, type, [&](std::size_t i) { return decode[i](reader, at[i]); });
}

bool decode_array(Reader& reader, const TypeInfo& type, DecodeFunction decode, std::byte* first, std::size_t stride) {
  return decode_elements(reader, type, [&](std::size_t i) { return decode(reader, first + i * stride); });
}

bool decode_alternatives(Reader& reader, const TypeInfo& type, const DecodeFunction* decode, void* variant) {
  const char* const start = reader.mark();
  const std::uint64_t candidates = find_candidates(reader, type);
  for (std::uint64_t left = candidates; left != 0; left &= left - 1) {
    if (decode[std::countr_zero(left)](reader, variant)) return true;
    // Where only one alternative came into question, what was wrong with it says more than a list of them all.
    if (std::has_single_bit(candidates)) return false;
    if (!reread_from(reader, start)) break;
    reader.clear_failure();
  }
  reader.rewind(start);
  return fail_as(reader, type);
}

bool decode_enumerator(Reader& reader, const TypeInfo& type, std::span<const EnumEntry> entries, std::int64_t& out) {
  const char* const start = reader.mark();
  std::string_view name;
  if (!reader.read_string(name)) return fail_as(reader, type);
  if (find_enumerator(entries, name, out)) return true;
  reader.rewind(start);
  return fail_as(reader, type);
}

bool decode_float(Reader& reader, float& out) {
  const char* const start = reader.mark();
  if (!reader.is_json()) {  // binary encodings have the number itself, NaN and infinities too
    double number = 0;
    if (!reader.read_double(number)) return false;
    out = static_cast<float>(number);
    if (std::isfinite(out) == std::isfinite(number)) return true;
  } else {
    // Rounding to double first and to float then could round twice, so the text is read again.
    std::string_view text;
    if (!reader.read_number_text(text)) return false;
    if (codec::parse_float(text, out)) return true;
  }
  reader.rewind(start);
  return reader.fail("number from -3.4028235e38 to 3.4028235e38");
}

bool decode_sized_bytes(Reader& reader, std::span<std::byte> out) {
  const char* const start = reader.mark();
  std::span<const std::byte> bytes;
  if (!reader.read_bytes(bytes)) return false;
  if (bytes.size() != out.size()) {
    reader.rewind(start);
    return reader.fail(std::to_string(out.size()) + " bytes as {\"$bytes\":\"<base64>\"}");
  }
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

bool fail_as(Reader& reader, const TypeInfo& type) { return reader.fail(describe(type)); }

bool fail_repeated(Reader& reader, std::string_view name) {
  reader.fail("member given once");
  return reader.failed_at(name);
}

bool key_to_int(Reader& reader, std::string_view name, std::int64_t min, std::int64_t max, std::int64_t& out) {
  if (whole_number(name, out) && out >= min && out <= max) return true;
  return reader.fail("member name that is an " + codec::integer_words(min, max));
}

bool key_to_uint(Reader& reader, std::string_view name, std::uint64_t max, std::uint64_t& out) {
  if (whole_number(name, out) && out <= max) return true;
  return reader.fail("member name that is an " + codec::integer_words(std::uint64_t{0}, max));
}

bool key_to_enumerator(Reader& reader, std::string_view name, const TypeInfo& type, std::span<const EnumEntry> entries,
                       std::int64_t& out) {
  if (find_enumerator(entries, name, out)) return true;
  return reader.fail("member name that is " + describe(type));
}

std::size_t count_characters(std::string_view utf8) noexcept {
  std::size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void encode_members(Writer& writer, std::span<const MemberInfo> members, const MemberEncoder* encoders,
                    const void* const* at) {
  const auto is_absent = [&](std::size_t i) { return encoders[i].is_empty != nullptr && encoders[i].is_empty(at[i]); };
  std::size_t count = 0;
  for (std::size_t i = 0; i < members.size(); ++i) count += is_absent(i) ? 0 : 1;
  writer.begin_object(count);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (is_absent(i)) continue;
    writer.key(members[i].name);
    encoders[i].encode(writer, at[i]);
  }
  writer.end_object();
}

std::string_view enumerator_name(Writer& writer, const TypeInfo& type, std::span<const EnumEntry> entries,
                                 std::int64_t value) {
  for (const EnumEntry& entry : entries) {
    if (entry.value == value) return entry.name;
  }
  writer.fail("the value " + std::to_string(value) + " of the enum " + std::string{type.name} + " has no name");
  return {};
}

void encode_enumerator(Writer& writer, const TypeInfo& type, std::span<const EnumEntry> entries, std::int64_t value) {
  writer.string(enumerator_name(writer, type, entries, value));
}

void encode_key(Writer& writer, std::int64_t key) { writer.key(std::to_string(key)); }
void encode_key(Writer& writer, std::uint64_t key) { writer.key(std::to_string(key)); }

namespace {

// What a text is decoded by, and which characters may follow its value.
struct Decoding {
  const Codec& codec;
  DecodeFunction decode;
  std::uint32_t depth_max;
  std::string_view ignored;
};

bool decode_whole(const Decoding& by, std::string_view text, void* out, Error& error) {
  const Scan scan = by.codec.scan(text, by.depth_max);
  if (scan.status == ScanStatus::complete && text.find_first_not_of(by.ignored, scan.offset) == text.npos) {
    const std::unique_ptr<Reader> reader = by.codec.reader();
    reader->reset(text.substr(0, scan.offset));
    if (by.decode(*reader, out)) return true;
    error = decode_error(*reader);
  } else if (scan.status == ScanStatus::too_deep) {
    error = Error::with_data(ErrorCode::parse_error, R"({"limit":"depth"})");
  } else {
    error = Error{ErrorCode::parse_error};
  }
  return false;
}

Buffer encode_with(const Codec& codec, EncodeFunction encode, const void* value) {
  Buffer out;
  const std::unique_ptr<Writer> writer = codec.writer();
  writer->reset(out);
  encode(*writer, value);
  if (writer->failed()) throw LocalError{ErrorCode::internal_error, writer->failure()};
  return out;
}

}  // namespace

bool decode_text(std::string_view text, DecodeFunction decode, void* out, std::uint32_t depth_max, Error& error) {
  Buffer copy{text};
  return decode_whole({json_codec(), decode, depth_max, " \t\r\n"}, copy.padded(), out, error);
}

std::string encode_text(EncodeFunction encode, const void* value) {
  return std::string{encode_with(json_codec(), encode, value).view()};
}

bool decode_binary(const Codec& codec, std::span<const std::byte> bytes, DecodeFunction decode, void* out,
                   std::uint32_t depth_max, Error& error) {
  const std::string_view value{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return decode_whole({codec, decode, depth_max, ""}, value, out, error);
}

std::vector<std::byte> encode_binary(const Codec& codec, EncodeFunction encode, const void* value) {
  const Buffer bytes = encode_with(codec, encode, value);
  const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

}  // namespace detail
}  // namespace wirecall
