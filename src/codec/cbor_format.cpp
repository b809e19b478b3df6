// See cbor_format.hpp: what is rarer than a value without tags, and floats.
#include "codec/cbor_format.hpp"

#include <cmath>

#include "wirecall/codec.hpp"

namespace wirecall::cbor {

using codec::load_big_endian;
using codec::store_big_endian;

namespace {

constexpr std::uint32_t kFloatSign = 0x8000'0000;
constexpr std::uint32_t kFloatMantissa = 0x007F'FFFF;
constexpr std::size_t kTimestampBytes = 12;

const char* behind_head(const char* p) noexcept { return p + 1 + argument_bytes(byte_at(p) & kInfo); }
bool is_indefinite(const char* p) noexcept { return (byte_at(p) & kInfo) == kInfoIndefinite; }

/// Gives `take` each piece of the bytes or string whose head is at `p`: one, or those of its chunks.
template <class Take>
void each_piece(const char* p, const Take& take) {
  const auto one = [&](const char* at) {
    const std::uint64_t size = argument_at(at);
    const char* const begin = behind_head(at);
    take(std::string_view{begin, static_cast<std::size_t>(size)});
    return begin + size;
  };
  if (!is_indefinite(p)) return static_cast<void>(one(p));
  for (++p; !is_break(p);) p = one(p);
}

Head without_form(NoForm why, std::uint32_t bytes) noexcept {
  return {.type = Type::no_form, .irregular = true, .bytes = bytes, .value = static_cast<std::uint64_t>(why)};
}

/// A bignum (section 3.4.3) whose bytes are at `p`. Zeros in front do not count.
Head bignum_at(const char* p, bool negative, std::uint32_t bytes) noexcept {
  std::uint64_t value = 0;
  bool fits = true;
  each_piece(p, [&](std::string_view piece) {
    for (const char c : piece) {
      fits = fits && value >> 56 == 0;
      value = value << 8 | static_cast<unsigned char>(c);
    }
  });
  if (negative) {
    fits = fits && value <= static_cast<std::uint64_t>(INT64_MAX);
    value = ~value;
  }
  if (!fits) return without_form(NoForm::integer_beyond, bytes);
  return {.type = negative ? Type::negative : Type::positive, .irregular = true, .bytes = bytes, .value = value};
}

struct Time {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
};

/// Seconds since 1970 as a number (section 3.4.2), of what RFC 3339 can express. A double has microseconds at the times
/// of ours, and not more.
bool time_of(const Head& number, Time& out) noexcept {
  constexpr std::int64_t kYear0 = -62'167'219'200;
  constexpr std::int64_t kYear10000 = 253'402'300'800;
  std::int64_t seconds = 0;
  std::uint32_t micros = 0;
  if (codec::is_integer(number)) {
    seconds = static_cast<std::int64_t>(number.value);
    if (seconds < 0 && number.type == Type::positive) return false;
  } else {
    const double real = codec::is_real(number) ? codec::real(number) : std::nan("");
    if (!(real >= kYear0 && real < kYear10000)) return false;
    seconds = static_cast<std::int64_t>(std::floor(real));
    micros = static_cast<std::uint32_t>(std::lround((real - std::floor(real)) * 1e6));
  }
  seconds += micros / 1'000'000;
  out = {seconds, micros % 1'000'000 * 1'000};
  return seconds >= kYear0 && seconds < kYear10000;
}

/// The bits of the half float that is the same number; false where there is none.
bool half_of(float value, std::uint16_t& out) noexcept {
  constexpr int kBias = 127;
  constexpr int kHalfBias = 15;
  constexpr int kLostBits = 13;  // of a mantissa
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & kFloatSign) >> 16;
  const std::uint32_t mantissa = bits & kFloatMantissa;
  const int exponent = static_cast<int>(bits >> 23 & 0xFF) - kBias;
  std::uint32_t half = 0;
  if (std::isinf(value)) {
    half = 0x7C00;
  } else if (exponent == -kBias) {
    if (mantissa != 0) return false;
  } else if (exponent > kHalfBias || exponent < -24) {
    return false;
  } else if (exponent > -kHalfBias) {
    if ((mantissa & ((1U << kLostBits) - 1)) != 0) return false;
    half = static_cast<std::uint32_t>(exponent + kHalfBias) << 10 | mantissa >> kLostBits;
  } else {  // below the normal ones
    const int shift = kLostBits - (exponent + kHalfBias - 1);
    const std::uint32_t whole = mantissa | (kFloatMantissa + 1);
    if ((whole & ((1U << shift) - 1)) != 0) return false;
    half = whole >> shift;
  }
  out = static_cast<std::uint16_t>(sign | half);
  return true;
}

}  // namespace

std::uint32_t float_of_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = half >> 10 & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0x1F) return sign | 0x7F80'0000 | mantissa << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | mantissa << 13;
  return sign | std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24F);
}

char* write_float(char* to, double value) noexcept {
  constexpr std::uint16_t kNaN = 0x7E00;
  const auto single = static_cast<float>(value);
  std::uint16_t half = kNaN;
  if (std::isnan(value) || (static_cast<double>(single) == value && half_of(single, half))) {
    *to = '\xF9';
    return store_big_endian(to + 1, half);
  }
  if (static_cast<double>(single) == value) {
    *to = '\xFA';
    return store_big_endian(to + 1, std::bit_cast<std::uint32_t>(single));
  }
  *to = '\xFB';
  return store_big_endian(to + 1, std::bit_cast<std::uint64_t>(value));
}

Head read_tagged_head(const char* p) noexcept {
  const char* at = p;
  for (;;) {
    const std::uint64_t tag = argument_at(at);
    at = behind_head(at);
    const auto bytes = static_cast<std::uint32_t>(at - p);
    const Major major = major_of(byte_at(at));
    const auto behind_tags = [&] {
      Head head = read_head(at);
      head.bytes += bytes;
      return head;
    };
    if (tag == 0) return major == Major::string ? behind_tags() : without_form(NoForm::time, bytes);
    if (tag == 1) {
      Time time;
      if (major == Major::tag || !time_of(read_head(at), time)) return without_form(NoForm::time, bytes);
      return {.type = Type::extension,
              .extension = kTimestampExtension,
              .irregular = true,
              .bytes = bytes,
              .value = kTimestampBytes};
    }
    if (tag == 2 || tag == 3) {
      return major == Major::binary ? bignum_at(at, tag == 3, bytes) : without_form(NoForm::bignum, bytes);
    }
    if (has_meaning(tag)) {
      if (major != Major::binary) return without_form(NoForm::extension, bytes);
      Head head = behind_tags();
      head.type = Type::extension;
      head.extension = static_cast<std::int8_t>(tag & 0xFF);
      return head;
    }
    if (major != Major::tag) return behind_tags();
  }
}

// Chunks one behind the other, and a time as MessagePack has it.
std::string_view Format::irregular_content(const char* p, const Head& head, codec::Arena& arena) {
  const char* const at = p + head.bytes;
  if (head.type == Type::extension && head.value != kIndefinite) {
    Time time{};
    time_of(cbor::read_head(at), time);
    char* const to = arena.allocate(kTimestampBytes);
    store_big_endian(store_big_endian(to, time.nanoseconds), static_cast<std::uint64_t>(time.seconds));
    return {to, kTimestampBytes};
  }
  std::size_t size = 0;
  each_piece(at - 1, [&](std::string_view piece) { size += piece.size(); });
  char* const to = arena.allocate(size);
  char* end = to;
  each_piece(at - 1, [&](std::string_view piece) {
    if (!piece.empty()) std::memcpy(end, piece.data(), piece.size());
    end += piece.size();
  });
  return {to, size};
}

std::uint64_t Format::count(const char* p, const Head& head) noexcept {
  if (head.value != kIndefinite) return head.value;
  std::uint64_t values = 0;
  for (; !is_break(p); ++values) p = cbor::skip_value(p);
  return head.type == Type::map ? values / 2 : values;
}

std::string_view Format::why_no_form(const Head& head) noexcept {
  switch (static_cast<NoForm>(head.value)) {
    case NoForm::integer_beyond: return kIntegerBeyond;
    case NoForm::simple: return "a simple value other than false, true, null and undefined";
    case NoForm::time: return "the tag 0 or 1 stands in front of no time, or of one outside the years 0 to 9999";
    case NoForm::bignum: return "the tag 2 or 3 stands in front of no bytes";
    case NoForm::extension: break;
  }
  return "the tag of an extension stands in front of no bytes";
}

}  // namespace wirecall::cbor
