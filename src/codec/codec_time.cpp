// Points in time as RFC 3339 strings. The calendar is counted in eras of 400 years, which are all alike.
#include "codec/codec_time.hpp"

#include "codec/msgpack_format.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {
namespace codec {
namespace {

constexpr std::int64_t kSecondsADay = 86'400;
constexpr std::int64_t kDaysAnEra = 146'097;   // 400 years
constexpr std::int64_t kDaysTo1970 = 719'468;  // from 0000-03-01

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Years begin in March here, so that the leap
/// day comes last.
constexpr std::int64_t days_from_date(std::int64_t year, unsigned month, unsigned day) noexcept {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * kDaysAnEra + day_of_era - kDaysTo1970;
}
static_assert(days_from_date(1970, 1, 1) == 0);
static_assert(days_from_date(2000, 3, 1) == 11'017);

struct Date {
  std::int64_t year;
  unsigned month;
  unsigned day;
};

constexpr Date date_from_days(std::int64_t days) noexcept {
  days += kDaysTo1970;
  const std::int64_t era = (days >= 0 ? days : days - (kDaysAnEra - 1)) / kDaysAnEra;
  const auto day_of_era = static_cast<unsigned>(days - era * kDaysAnEra);
  const unsigned year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * day_of_year + 2) / 153;
  const unsigned day = day_of_year - (153 * shifted + 2) / 5 + 1;
  const unsigned month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {era * 400 + year_of_era + (month <= 2 ? 1 : 0), month, day};
}

constexpr unsigned days_in_month(unsigned year, unsigned month) noexcept {
  constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

/// Takes fixed pieces off the front of a text.
class Pieces {
 public:
  explicit Pieces(std::string_view text) noexcept : text_(text) {}

  bool digits(std::size_t count, unsigned& out) noexcept {
    if (text_.size() < count) return false;
    out = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return false;
      out = out * 10 + static_cast<unsigned>(text_[i] - '0');
    }
    text_.remove_prefix(count);
    return true;
  }
  bool one_of(std::string_view characters, char& out) noexcept {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    out = text_.front();
    text_.remove_prefix(1);
    return true;
  }
  bool character(char c) noexcept {
    char ignored;
    return one_of({&c, 1}, ignored);
  }
  /// Digits of a fraction, of which the first nine count.
  bool fraction(std::int32_t& nanoseconds) noexcept {
    std::size_t count = 0;
    nanoseconds = 0;
    for (; count < text_.size() && text_[count] >= '0' && text_[count] <= '9'; ++count) {
      if (count < 9) nanoseconds = nanoseconds * 10 + (text_[count] - '0');
    }
    for (std::size_t i = count; i < 9; ++i) nanoseconds *= 10;
    text_.remove_prefix(count);
    return count != 0;
  }
  [[nodiscard]] bool at_end() const noexcept { return text_.empty(); }

 private:
  std::string_view text_;
};

bool parse_time(std::string_view text, std::int64_t& seconds, std::int32_t& nanoseconds) noexcept {
  Pieces pieces{text};
  unsigned year, month, day, hour, minute, second;
  char ignored;
  if (!pieces.digits(4, year) || !pieces.character('-') || !pieces.digits(2, month) || !pieces.character('-') ||
      !pieces.digits(2, day) || !pieces.one_of("Tt ", ignored) || !pieces.digits(2, hour) || !pieces.character(':') ||
      !pieces.digits(2, minute) || !pieces.character(':') || !pieces.digits(2, second)) {
    return false;
  }
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) return false;
  if (hour > 23 || minute > 59 || second > 59) return false;
  nanoseconds = 0;
  if (pieces.character('.') && !pieces.fraction(nanoseconds)) return false;
  std::int64_t offset = 0;
  char zone;
  if (!pieces.one_of("Zz+-", zone)) return false;
  if (zone == '+' || zone == '-') {
    unsigned hours, minutes;
    if (!pieces.digits(2, hours) || !pieces.character(':') || !pieces.digits(2, minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    offset = (std::int64_t{hours} * 60 + minutes) * (zone == '+' ? 60 : -60);
  }
  if (!pieces.at_end()) return false;
  seconds =
      days_from_date(year, month, day) * kSecondsADay + std::int64_t{hour} * 3'600 + minute * 60 + second - offset;
  return true;
}

void append_digits(std::string& out, std::int64_t value, int count) {
  char digits[10];
  for (int i = count; i-- != 0; value /= 10) digits[i] = static_cast<char>('0' + value % 10);
  out.append(digits, static_cast<std::size_t>(count));
}

}  // namespace

std::string format_time(const TimePoint& time, int digits) {
  std::int64_t days = time.seconds / kSecondsADay;
  std::int64_t second = time.seconds % kSecondsADay;
  if (second < 0) {
    second += kSecondsADay;
    --days;
  }
  const Date date = date_from_days(days);
  if (date.year < 0 || date.year > 9999) return {};
  std::string text;
  append_digits(text, date.year, 4);
  append_digits(text += '-', date.month, 2);
  append_digits(text += '-', date.day, 2);
  append_digits(text += 'T', second / 3'600, 2);
  append_digits(text += ':', second / 60 % 60, 2);
  append_digits(text += ':', second % 60, 2);
  if (digits != 0) {
    std::int64_t part = time.nanoseconds;
    for (int i = digits; i < 9; ++i) part /= 10;
    append_digits(text += '.', part, digits);
  }
  return text += 'Z';
}

std::string format_time(const TimePoint& time) {
  const std::int32_t part = time.nanoseconds;
  return format_time(time, part == 0 ? 0 : part % 1'000'000 == 0 ? 3 : part % 1'000 == 0 ? 6 : 9);
}

bool parse_timestamp(std::span<const std::byte> data, TimePoint& out) noexcept {
  const char* const p = reinterpret_cast<const char*>(data.data());
  std::uint64_t nanoseconds = 0;
  if (data.size() == 4) {
    out.seconds = msgpack::load_big_endian<std::uint32_t>(p);
  } else if (data.size() == 8) {
    const auto both = msgpack::load_big_endian<std::uint64_t>(p);
    out.seconds = static_cast<std::int64_t>(both & 0x3'FFFF'FFFF);
    nanoseconds = both >> 34;
  } else if (data.size() == 12) {
    nanoseconds = msgpack::load_big_endian<std::uint32_t>(p);
    out.seconds = static_cast<std::int64_t>(msgpack::load_big_endian<std::uint64_t>(p + 4));
  } else {
    return false;
  }
  out.nanoseconds = static_cast<std::int32_t>(nanoseconds);
  return nanoseconds < 1'000'000'000;
}

std::string timestamp_text(std::span<const std::byte> data) {
  TimePoint time;
  return parse_timestamp(data, time) ? format_time(time) : std::string{};
}

}  // namespace codec

namespace detail {

bool decode_time(Reader& reader, std::int64_t& seconds, std::int32_t& nanoseconds) {
  constexpr std::string_view kExpected = "date-time as 2024-05-06T07:08:09Z";
  const char* const start = reader.mark();
  if (reader.kind() == ValueKind::extension) {
    std::int8_t type = 0;
    std::span<const std::byte> data;
    codec::TimePoint time;
    if (reader.read_extension(type, data) && type == kTimestampExtension && codec::parse_timestamp(data, time)) {
      seconds = time.seconds;
      nanoseconds = time.nanoseconds;
      return true;
    }
  } else {
    std::string_view text;
    if (!reader.read_string(text)) return reader.fail(kExpected);
    if (codec::parse_time(text, seconds, nanoseconds)) return true;
  }
  reader.rewind(start);
  return reader.fail(kExpected);
}

void encode_time(Writer& writer, std::int64_t seconds, std::int32_t nanoseconds, int digits) {
  const std::string text = codec::format_time({seconds, nanoseconds}, digits);
  if (!text.empty()) return writer.string(text);
  writer.fail("a time point lies outside the years 0 to 9999, which RFC 3339 cannot express");
  writer.null();
}

}  // namespace detail
}  // namespace wirecall
