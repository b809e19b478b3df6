// JsonAutomaton: finds where one JSON value ends when the value comes in pieces: a pushdown automaton that looks at
// each byte once, whatever the pieces, and stops at the first byte with which no JSON text can go on (RFC 8259, UTF-8
// and surrogate pairs included). It keeps no bytes and decodes nothing; the codec's scanner, which is many times
// faster, does the same for values that lie in memory as a whole, and refuses the same bytes. A value with one owner.
// It allocates only for values nested deeper than 64 levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace wirecall::framing {

class JsonAutomaton {
 public:
  enum class Status : std::uint8_t {
    more,       ///< all bytes belong to the value, which goes on
    complete,   ///< the value ends `offset` bytes into these
    malformed,  ///< the byte at `offset` cannot be part of a value
    too_deep,   ///< the bracket at `offset` nests deeper than allowed
  };
  struct Result {
    Status status;
    std::size_t offset;
  };

  /// Starts over: the next byte is the first of a value, white space having been skipped.
  void start(std::uint32_t depth_max) noexcept;
  Result feed(std::string_view bytes);
  /// The bytes so far are a whole value if nothing follows: a number, or a string or literal on top level.
  [[nodiscard]] bool could_end() const noexcept;
  /// A line of the value has ended.
  [[nodiscard]] bool line_ended() const noexcept { return line_ended_; }

 private:
  enum class State : std::uint8_t {
    value,          // a value is due
    first_element,  // a value or the end of the array
    first_key,      // a name or the end of the object
    key,            // a name
    colon,
    separator,  // behind a value: a comma or the end of what it is in
    scalar,     // behind a string or literal on top level: white space
    string,
    escape,
    utf8,     // a byte between low_ and high_, then continuation_ more
    literal,  // the rest of it at literal_
    // \uXXXX, by the digit that is due. After a first digit D, the second tells first and second halves of pairs apart.
    hex1,
    hex2,
    hex2_after_d,
    hex3,
    hex4,
    // The first half of a pair, and what must follow it: \uDC00 to \uDFFF.
    high3,
    high4,
    pair_backslash,
    pair_u,
    pair1,
    pair2,
    minus,
    zero,
    integer,
    point,
    fraction,
    exponent_mark,
    exponent_sign,
    exponent,
  };

  bool step(char c);
  bool begin_value(char c);
  bool open(bool object);
  bool close(bool object) noexcept;
  bool end_number(char c);
  void end_string() noexcept;
  bool string_byte(unsigned char c) noexcept;
  bool number_byte(char c);
  bool escape_byte(char c) noexcept;
  void end_value(State on_top) noexcept { state_ = depth_ == 0 ? on_top : State::separator; }
  std::uint64_t& word(std::uint32_t level) noexcept { return level < 64 ? inline_levels_ : levels_[level / 64]; }
  [[nodiscard]] bool in_object() noexcept { return (word(depth_ - 1) >> (depth_ - 1) % 64) & 1; }

  State state_ = State::value;
  bool name_ = false;         // the string is a member's name
  bool done_ = false;         // the value has ended with the byte just seen, or
  bool done_before_ = false;  // before it
  bool too_deep_ = false;
  bool line_ended_ = false;
  unsigned char low_ = 0;
  unsigned char high_ = 0;
  unsigned char continuation_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t depth_max_ = 0;
  std::uint64_t inline_levels_ = 0;          // a bit a level: is it an object?
  std::unique_ptr<std::uint64_t[]> levels_;  // the same from level 64 on, when there are so many
  const char* literal_ = nullptr;
};

}  // namespace wirecall::framing
