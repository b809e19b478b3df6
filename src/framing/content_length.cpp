// See content_length.hpp. The header is followed byte by byte: it is short, and may end anywhere in a read.
#include "framing/content_length.hpp"

#include <algorithm>
#include <charconv>

#include "base/assert.hpp"
#include "framing/token.hpp"

namespace wirecall::framing {

constexpr std::string_view kName = "content-length";
constexpr std::string_view kHead = "Content-Length: ";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::size_t kDigitsMax = 20;
constexpr std::uint8_t kOtherName = 255;

Found ContentLength::next(std::span<char> bytes) {
  const std::string_view input{bytes.data(), bytes.size()};
  std::size_t at = 0;
  if (state_ != State::body) {
    while (at < input.size() && state_ != State::body) {
      const State before = state_;
      if (state_ == State::broken || ++header_ > limits_->header_bytes || !step(input[at])) {
        if (before != State::broken) cause_ = why_broken(before, input[at]);
        state_ = State::broken;
        return {Find::malformed, static_cast<std::uint32_t>(at), 0};
      }
      ++at;
    }
    const auto skip = static_cast<std::uint32_t>(at);
    if (state_ == State::body) length_ = agreed_;
    if (state_ == State::body && length_ > limits_->max_message_size) return {Find::too_large, skip, 0};
    if (state_ != State::body || (at == input.size() && length_ != 0)) return {Find::nothing, skip, 0};
  }
  const auto skip = static_cast<std::uint32_t>(at);
  const std::size_t here = input.size() - at;
  if (here < length_) {
    length_ -= here;
    return {Find::part, skip, here};
  }
  state_ = State::line;
  known_ = false;
  header_ = 0;
  return {Find::message, skip, std::exchange(length_, 0)};
}

// `c` cannot stand in that state.
std::string_view ContentLength::why_broken(State in, char c) const noexcept {
  if (header_ > limits_->header_bytes) return "the header has more bytes than allowed";
  if (in == State::line_feed || in == State::last_feed) return "the header has a CR without LF";
  if (c == '\n') return "the header ends in LF without CR";
  switch (in) {
    case State::line:
      return c == '\r' ? "the header has no Content-Length" : "a line of the header has no name and colon";
    case State::name: return "a line of the header has no name and colon";
    case State::digits:
    case State::after_digits:
      if (c == '\r') return "two Content-Lengths that differ";
      [[fallthrough]];
    case State::before_value: return "a Content-Length that is not decimal digits";
    default: return "a byte that cannot stand in a header";
  }
}

// False when `c` cannot stand there.
bool ContentLength::step(char c) noexcept {
  switch (state_) {
    case State::line:
      if (c == '\r') {
        state_ = State::last_feed;
        return known_;
      }
      state_ = State::name;
      name_bytes_ = 0;
      [[fallthrough]];
    case State::name:
      if (c == ':') {
        state_ = name_bytes_ == kName.size() ? State::before_value : State::passing;
        length_ = 0;
        return name_bytes_ != 0;
      }
      if (name_bytes_ < kName.size() && lower(c) == kName[name_bytes_]) {
        ++name_bytes_;
      } else {
        name_bytes_ = kOtherName;
      }
      return is_token(c);
    case State::before_value:
      if (c == ' ' || c == '\t') return true;
      state_ = State::digits;
      if (!is_digit(c)) return false;
      [[fallthrough]];
    case State::digits:
      if (is_digit(c)) {
        length_ = std::min(length_ * 10 + static_cast<std::size_t>(c - '0'), kLengthMax);
        return true;
      }
      state_ = State::after_digits;
      [[fallthrough]];
    case State::after_digits:
      if (c == ' ' || c == '\t') return true;
      return c == '\r' && end_field();
    case State::passing:
      if (c == '\r') {
        state_ = State::line_feed;
        return true;
      }
      return is_field_text(c);
    case State::line_feed: state_ = State::line; return c == '\n';
    case State::last_feed: state_ = State::body; return c == '\n';
    case State::body:
    case State::broken: break;
  }
  return false;
}

// A second Content-Length has to say the same.
bool ContentLength::end_field() noexcept {
  state_ = State::line_feed;
  const bool agrees = !known_ || agreed_ == length_;
  known_ = true;
  agreed_ = length_;
  return agrees;
}

Recovery ContentLength::recover(std::string_view) {
  return state_ == State::broken ? Recovery::close : Recovery::resume;
}

Found ContentLength::end_of_stream() {
  if (begun()) cause_ = "the connection ended within a message";
  return {begun() ? Find::malformed : Find::nothing, 0, 0};
}

std::size_t ContentLength::head_bytes() const noexcept { return kHead.size() + kDigitsMax + kHeadEnd.size(); }

// The head-room is for the longest length, and the message moves down to the one that it has.
void ContentLength::seal(Buffer& out, std::size_t begin, bool) {
  WIRECALL_ASSERT(begin + head_bytes() <= out.size());
  char* const head = out.data() + begin;
  const std::size_t bytes = out.size() - begin - head_bytes();
  std::memcpy(head, kHead.data(), kHead.size());
  char* p = std::to_chars(head + kHead.size(), head + kHead.size() + kDigitsMax, bytes).ptr;
  std::memcpy(p, kHeadEnd.data(), kHeadEnd.size());
  p += kHeadEnd.size();
  std::memmove(p, head + head_bytes(), bytes);
  out.set_end(p + bytes);
}

}  // namespace wirecall::framing
