// The automaton's table, written as code (see json_automaton.hpp). Each function returns false when the byte cannot be
// part of a value.
#include "framing/json_automaton.hpp"

#include <cstring>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "base/text_block.hpp"

namespace wirecall::framing {

// Digits from 0xC to 0xF.
static bool is_hex_from_c(char c) noexcept { return (c | 0x20) >= 'c' && (c | 0x20) <= 'f'; }

// The number of bytes at the start of [p, end) that stand for themselves in a string.
static std::size_t plain_bytes(const char* p, const char* end) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  const auto zero_bytes = [](std::uint64_t x) { return (x - kOnes) & ~x; };
  const char* const begin = p;
  while (end - p >= TextBlock::kBytes && !TextBlock{p}.has_special()) p += TextBlock::kBytes;
  for (; end - p >= 8; p += 8) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
    const std::uint64_t control = x - 0x20 * kOnes;  // its high bit: a byte below 0x20, or a borrow from one
    if (((x | control | zero_bytes(x ^ '"' * kOnes) | zero_bytes(x ^ '\\' * kOnes)) & kHighs) != 0) break;
  }
  while (p != end && static_cast<unsigned char>(*p) >= 0x20 && static_cast<unsigned char>(*p) < 0x80 && *p != '"' &&
         *p != '\\') {
    ++p;
  }
  return static_cast<std::size_t>(p - begin);
}

void JsonAutomaton::start(std::uint32_t depth_max) noexcept {
  state_ = State::value;
  name_ = done_ = done_before_ = too_deep_ = line_ended_ = false;
  depth_ = 0;
  depth_max_ = depth_max;
  levels_.reset();
}

JsonAutomaton::Result JsonAutomaton::feed(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  for (const char* p = begin; p != end; ++p) {
    if (state_ == State::string) {
      p += plain_bytes(p, end);
      if (p == end) break;
    }
    const auto offset = static_cast<std::size_t>(p - begin);
    if (!step(*p)) return {too_deep_ ? Status::too_deep : Status::malformed, offset};
    if (done_) return {Status::complete, done_before_ ? offset : offset + 1};
  }
  return {Status::more, bytes.size()};
}

bool JsonAutomaton::could_end() const noexcept {
  return depth_ == 0 && (state_ == State::scalar || state_ == State::zero || state_ == State::integer ||
                         state_ == State::fraction || state_ == State::exponent);
}

bool JsonAutomaton::step(char c) {
  if (state_ <= State::scalar && is_space(c)) {
    line_ended_ = line_ended_ || c == '\n';
    done_ = done_before_ = state_ == State::scalar;
    return true;
  }
  switch (state_) {
    case State::value: return begin_value(c);
    case State::first_element: return c == ']' ? close(false) : begin_value(c);
    case State::first_key:
      if (c == '}') return close(true);
      [[fallthrough]];
    case State::key:
      name_ = true;
      state_ = State::string;
      return c == '"';
    case State::colon: state_ = State::value; return c == ':';
    case State::separator:
      if (c == '}' || c == ']') return close(c == '}');
      if (c != ',') return false;
      state_ = in_object() ? State::key : State::value;
      return true;
    case State::scalar: return false;
    case State::string:
    case State::utf8: return string_byte(static_cast<unsigned char>(c));
    case State::literal:
      if (c != *literal_) return false;
      if (*++literal_ == '\0') end_value(State::scalar);
      return true;
    default: return state_ >= State::minus ? number_byte(c) : escape_byte(c);
  }
}

bool JsonAutomaton::begin_value(char c) {
  switch (c) {
    case '{': return open(true);
    case '[': return open(false);
    case '"':
      name_ = false;
      state_ = State::string;
      return true;
    case 't':
    case 'f':
    case 'n':
      literal_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
      state_ = State::literal;
      return true;
    case '-': state_ = State::minus; return true;
    default: state_ = c == '0' ? State::zero : State::integer; return is_digit(c);
  }
}

bool JsonAutomaton::open(bool object) {
  if (depth_ == depth_max_) {
    too_deep_ = true;
    return false;
  }
  if (depth_ == 64 && levels_ == nullptr) levels_ = std::make_unique<std::uint64_t[]>(depth_max_ / 64 + 1);
  std::uint64_t& bits = word(depth_);
  const std::uint64_t bit = std::uint64_t{1} << depth_ % 64;
  bits = object ? bits | bit : bits & ~bit;
  ++depth_;
  state_ = object ? State::first_key : State::first_element;
  return true;
}

bool JsonAutomaton::close(bool object) noexcept {
  WIRECALL_ASSERT(depth_ != 0);
  if (in_object() != object) return false;
  done_ = --depth_ == 0;
  state_ = State::separator;
  return true;
}

void JsonAutomaton::end_string() noexcept {
  if (name_) {
    state_ = State::colon;
  } else {
    end_value(State::scalar);
  }
}

bool JsonAutomaton::string_byte(unsigned char c) noexcept {
  if (state_ == State::utf8) {
    if (c < low_ || c > high_) return false;
    low_ = 0x80;
    high_ = 0xBF;
    if (--continuation_ == 0) state_ = State::string;
    return true;
  }
  if (c == '"') {
    end_string();
    return true;
  }
  if (c == '\\') {
    state_ = State::escape;
    return true;
  }
  if (c < 0x80) return c >= 0x20;
  // RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
  state_ = State::utf8;
  low_ = 0x80;
  high_ = 0xBF;
  if (c >= 0xC2 && c <= 0xDF) {
    continuation_ = 1;
  } else if (c >= 0xE0 && c <= 0xEF) {
    continuation_ = 2;
    if (c == 0xE0) low_ = 0xA0;
    if (c == 0xED) high_ = 0x9F;
  } else if (c >= 0xF0 && c <= 0xF4) {
    continuation_ = 3;
    if (c == 0xF0) low_ = 0x90;
    if (c == 0xF4) high_ = 0x8F;
  } else {
    return false;
  }
  return true;
}

bool JsonAutomaton::escape_byte(char c) noexcept {
  const auto go_if = [this](bool allowed, State next) {
    state_ = next;
    return allowed;
  };
  switch (state_) {
    case State::escape:
      return c == 'u' ? go_if(true, State::hex1)
                      : go_if(c != '\0' && std::strchr("\"\\/bfnrt", c) != nullptr, State::string);
    case State::hex1: return go_if(is_hex(c), (c | 0x20) == 'd' ? State::hex2_after_d : State::hex2);
    case State::hex2: return go_if(is_hex(c), State::hex3);
    case State::hex2_after_d:
      // D0 to D7: no surrogate; D8 to DB: a first half; DC to DF: a second half, alone.
      return go_if(is_hex(c) && !is_hex_from_c(c), c <= '7' ? State::hex3 : State::high3);
    case State::hex3: return go_if(is_hex(c), State::hex4);
    case State::hex4: return go_if(is_hex(c), State::string);
    case State::high3: return go_if(is_hex(c), State::high4);
    case State::high4: return go_if(is_hex(c), State::pair_backslash);
    case State::pair_backslash: return go_if(c == '\\', State::pair_u);
    case State::pair_u: return go_if(c == 'u', State::pair1);
    case State::pair1: return go_if((c | 0x20) == 'd', State::pair2);
    default:  // pair2
      return go_if(is_hex_from_c(c), State::hex3);
  }
}

bool JsonAutomaton::number_byte(char c) {
  const bool digit = is_digit(c);
  const bool mark = (c | 0x20) == 'e';
  switch (state_) {
    case State::minus: state_ = c == '0' ? State::zero : State::integer; return digit;
    case State::integer:
      if (digit) return true;
      [[fallthrough]];
    case State::zero:
      if (c == '.') {
        state_ = State::point;
        return true;
      }
      break;
    case State::point: state_ = State::fraction; return digit;
    case State::fraction:
      if (digit) return true;
      break;
    case State::exponent_mark:
      state_ = c == '+' || c == '-' ? State::exponent_sign : State::exponent;
      return digit || state_ == State::exponent_sign;
    case State::exponent_sign: state_ = State::exponent; return digit;
    default:  // exponent
      return digit || end_number(c);
  }
  if (mark) {
    state_ = State::exponent_mark;
    return true;
  }
  return end_number(c);
}

// The number has ended before `c`, which is the first byte behind it.
bool JsonAutomaton::end_number(char c) {
  end_value(State::scalar);
  return step(c);
}

}  // namespace wirecall::framing
