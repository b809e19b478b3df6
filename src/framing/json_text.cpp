// See json_text.hpp. Between messages white space is skipped, and the delimiter where there is one; after a syntax
// error the rest of the line, if the message had begun on it.
#include "framing/json_text.hpp"

#include <stdexcept>

#include "base/ascii.hpp"
#include "framing/byte_order_mark.hpp"

namespace wirecall::framing {

constexpr std::string_view kSpace = " \t\r\n";

static Found found(Find find, std::size_t skip) noexcept { return {find, static_cast<std::uint32_t>(skip), 0}; }

JsonTextSettings::JsonTextSettings(const Limits& limits, std::string delimiter)
    : limits_(&limits), delimiter_(std::move(delimiter)) {
  if (delimiter_.empty())
    throw std::invalid_argument{"the delimiter is empty: give at least one byte, such as \"\\n\""};
  const std::size_t first = delimiter_.find_first_not_of(kSpace);
  if (first == std::string::npos) {
    if (delimiter_.find_first_of("\r\n") != std::string::npos) return;
    throw std::invalid_argument{
        "the delimiter is of blanks and tabs, which may stand anywhere in JSON: let it have a line break"};
  }
  mark_ = delimiter_.substr(first, delimiter_.find_last_not_of(kSpace) + 1 - first);
  if (std::string_view{"{[\"-0123456789tfn"}.find(mark_[0]) != std::string_view::npos) {
    throw std::invalid_argument{"the delimiter \"" + delimiter_ +
                                "\" could be taken for the start of a JSON value: let it begin with a byte that "
                                "none begins with, such as '|' or '#'"};
  }
}

Found JsonText::next(std::span<char> bytes) {
  const std::string_view input{bytes.data(), bytes.size()};
  if (state_ == State::between && settings_->mark().empty()) [[likely]] {
    const char* p = input.data();
    const char* const end = p + input.size();
    while (static_cast<unsigned char>(*p) <= ' ' && is_space(*p)) {
      if (++p == end) return found(Find::nothing, input.size());
    }
    return found(Find::opening, static_cast<std::size_t>(p - input.data()));
  }
  switch (state_) {
    case State::within: return feed(input);
    case State::discarding: return discard(input);
    case State::start: return start(bytes);
    case State::between: break;
  }
  return begin(input);
}

// One byte order mark may come before everything.
Found JsonText::start(std::span<char> input) {
  std::size_t at = 0;
  while (at < input.size() && marked_ < kByteOrderMark.size() && input[at] == kByteOrderMark[marked_]) ++at, ++marked_;
  if (at == input.size() && marked_ < kByteOrderMark.size()) return found(Find::nothing, at);
  const bool broken = marked_ != 0 && marked_ != kByteOrderMark.size();
  state_ = State::between;
  marked_ = 0;
  if (broken) return found(Find::malformed, at);
  if (at == input.size()) return found(Find::nothing, at);
  Found behind = next(input.subspan(at));
  behind.skip += static_cast<std::uint32_t>(at);
  return behind;
}

// From one message to the next where there are delimiters.
Found JsonText::begin(std::string_view input) {
  const std::string_view mark = settings_->mark();
  std::size_t at = 0;
  for (; at < input.size(); ++at) {
    const char c = input[at];
    if (marked_ != 0 || c == mark[0]) {
      if (c != mark[marked_]) {
        marked_ = 0;
        return found(Find::malformed, at);
      }
      if (++marked_ == mark.size()) marked_ = 0;
      continue;
    }
    if (!is_space(c)) return found(Find::opening, at);
  }
  return found(Find::nothing, at);
}

Found JsonText::unfinished(std::string_view input) {
  state_ = State::within;
  automaton_.start(settings_->limits().depth);
  return feed(input);
}

Found JsonText::feed(std::string_view input) {
  const JsonAutomaton::Result result = automaton_.feed(input);
  switch (result.status) {
    case JsonAutomaton::Status::more: return {Find::part, 0, input.size()};
    case JsonAutomaton::Status::complete: state_ = State::between; return {Find::message, 0, result.offset};
    case JsonAutomaton::Status::too_deep: return {Find::too_deep, 0, result.offset};
    case JsonAutomaton::Status::malformed: break;
  }
  return {Find::malformed, 0, result.offset};
}

Recovery JsonText::recover(std::string_view read) {
  const bool line_ended = state_ == State::within ? automaton_.line_ended() : read.find('\n') != std::string_view::npos;
  if (line_ended) return Recovery::close;
  state_ = State::discarding;
  passed_over_ = 0;
  return Recovery::resynchronise;
}

Found JsonText::discard(std::string_view input) {
  const std::size_t newline = input.find('\n');
  const std::size_t bytes = newline == std::string_view::npos ? input.size() : newline + 1;
  passed_over_ += bytes;
  if (passed_over_ > settings_->limits().max_message_size) return {Find::lost, 0, 0};
  if (newline != std::string_view::npos) state_ = State::between;
  return found(Find::nothing, bytes);
}

Found JsonText::end_of_stream() {
  if (state_ != State::within) return {};
  state_ = State::between;
  return {automaton_.could_end() ? Find::message : Find::malformed, 0, 0};
}

}  // namespace wirecall::framing
