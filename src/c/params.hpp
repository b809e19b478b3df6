// Params: the parameters of one call, found by position or by name in any order, as the handler asks for them. In the
// order in which they were sent, which is the usual one, each is found by one step of the reader. Integers that were
// decoded with the envelope are taken from there. It also knows what the caller has given that nobody has asked for.
// Owned by the call; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "c/values.hpp"
#include "wirecall/message.hpp"

namespace wirecall::c {

struct Parameter {
  std::size_t index;
  const char* name;  ///< null for none

  [[nodiscard]] std::string_view words() const noexcept {
    return name != nullptr ? std::string_view{name} : std::string_view{};
  }
};

class Params : public Values {
 public:
  /// `integers` has the params where they are integers that were decoded with the envelope; else null.
  /// `thread_reader` is null where it is made when it is needed, and `text` is JSON then.
  Params(std::string_view text, const Received* integers, Reader* thread_reader) noexcept
      : text_(text), integers_(integers) {
    reader = thread_reader;
  }

  /// Finds and reads a parameter. `optional`: one that is missing, or null, is left as it is.
  [[nodiscard]] bool get(const Parameter& parameter, Reading reading, const Target& target, bool optional);
  /// An integer that was decoded with the envelope. False where it is to be read.
  [[gnu::always_inline]] [[nodiscard]] bool take_integer(const Parameter& parameter, std::uint32_t& out) noexcept {
    if (integers_ == nullptr) return false;
    if (!integers_->integers_named) {
      if (parameter.index >= integers_->integer_count) return false;
      if (parameter.index >= asked_) asked_ = parameter.index + 1;
      out = integers_->integers[parameter.index];
      return true;
    }
    return take_named_integer(parameter, out);
  }
  [[nodiscard]] bool given(const Parameter& parameter);
  void allow_more() noexcept { more_ = true; }
  /// Whether nothing was given that nobody has asked for; else the reader has the failure.
  [[gnu::always_inline]] [[nodiscard]] bool all_asked_for() {
    if (more_ || text_.empty()) return true;
    if (integers_ != nullptr && reader_untouched()) {
      if (!integers_->integers_named) {
        if (asked_ >= integers_->integer_count) return true;
      } else if (taken_ == (std::uint64_t{1} << integers_->integer_count) - 1) {
        return true;
      }
    }
    return all_read();
  }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

 private:
  enum class Shape : std::uint8_t { unknown, none, array, object };
  static constexpr std::size_t kNoValue = ~std::size_t{0};

  [[nodiscard]] bool reader_untouched() const noexcept { return shape_ == Shape::unknown; }
  bool take_named_integer(const Parameter& parameter, std::uint32_t& out) noexcept;
  /// The reader stands at the parameter's value. False where it is not given.
  bool find(const Parameter& parameter);
  bool find_position(std::size_t index);
  bool find_name(std::string_view name);
  bool step(std::string_view& name);
  void start_over();
  bool all_read();
  void refuse_extra(std::string_view name, bool twice);

  std::string_view text_;
  const Received* integers_;
  std::size_t asked_ = 0;     // positions, from the first to the last that was asked for
  std::uint64_t taken_ = 0;   // of the members: bit i for the i-th that was sent
  Shape shape_ = Shape::unknown;
  bool more_ = false;
  bool ended_ = false;               // the reader has passed the last value
  std::size_t number_ = kNoValue;    // of the value at mark_, in the order in which they were sent
  const char* mark_ = nullptr;
  const char* root_ = nullptr;       // the params as a whole
  std::unique_ptr<Reader> own_reader_;
};

}  // namespace wirecall::c
