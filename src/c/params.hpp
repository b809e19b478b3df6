// Params: the parameters of one call, found by position or by name in any order, as the handler asks for them. In the
// order in which they were sent, which is the usual one, each is found by one step of the reader; in another order by
// an index. Integers that were decoded with the envelope are taken from there. It also knows what the caller has given
// that nobody has asked for. Owned by the call; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "c/member_index.hpp"
#include "c/values.hpp"
#include "wirecall/context.hpp"
#include "wirecall/message.hpp"

namespace wirecall::c {

struct Parameter {
  std::size_t index;
  const char* name;  ///< null for none

  [[nodiscard]] std::string_view words() const noexcept {
    return name != nullptr ? std::string_view{name} : std::string_view{};
  }
};

class Detached;

/// What few calls need.
struct Extras {
  std::unique_ptr<Reader> reader;
  std::optional<Context> context;      ///< once it was asked for
  std::shared_ptr<Detached> deferred;  ///< what wc_call_defer has made of the call
  std::vector<bool> taken;             ///< by number, of members behind the 64th: somebody has asked for them
};

class Params : public Values {
 public:
  /// `integers` has the params where they are integers that were decoded with the envelope; else null.
  /// `thread_reader` is null where it is made when it is needed, and `text` is JSON then.
  Params(std::string_view text, const Received* integers, Reader* thread_reader) noexcept
      : text_(text), integers_(integers) {  // NOLINT(cppcoreguidelines-pro-type-member-init)
    reader = thread_reader;
  }

  /// Finds and reads a parameter. `optional`: one that is missing, or null, is left as it is.
  [[gnu::always_inline]] [[nodiscard]] bool get(const Parameter& parameter, Reading reading, const Target& target,
                                                bool optional) {
    if (failed) return false;
    if (!find(parameter)) return !failed && (optional || missing(parameter, reading));
    if (optional && reader->read_null()) return true;
    if (read(reading, target, parameter.name, top)) [[likely]]
      return true;
    wrong(parameter);
    return false;
  }
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
  [[nodiscard]] Extras& extras() {
    if (!extras_) extras_ = std::make_unique<Extras>();
    return *extras_;
  }
  [[nodiscard]] bool has_extras() const noexcept { return extras_ != nullptr; }

 private:
  enum class Shape : std::uint8_t { unknown, none, array, object };
  static constexpr std::size_t kNoValue = ~std::size_t{0};

  [[nodiscard]] bool reader_untouched() const noexcept { return shape_ == Shape::unknown; }
  /// Whether `text`, which holds no NUL, is the name. Names are short: this takes less than strlen does, and it ends
  /// with the name.
  [[gnu::always_inline]] static inline bool is_name(const char* name, const Received::Span& text) noexcept {
    std::size_t i = 0;
    for (; i + 4 <= text.size; i += 4) {  // by hand: a compiler may not, since it does not know where the name ends
      if (name[i] != text.data[i] || name[i + 1] != text.data[i + 1] || name[i + 2] != text.data[i + 2] ||
          name[i + 3] != text.data[i + 3])
        return false;
    }
    for (; i != text.size; ++i) {
      if (name[i] != text.data[i]) return false;
    }
    return name[i] == '\0';
  }
  /// Callers mostly keep the order.
  [[gnu::always_inline]] bool take_named_integer(const Parameter& parameter, std::uint32_t& out) noexcept {
    if (parameter.name == nullptr) return false;
    std::size_t i = parameter.index;
    if (i >= integers_->integer_count || !is_name(parameter.name, integers_->integer_names[i])) [[unlikely]] {
      i = find_named_integer(parameter.name);
      if (i == integers_->integer_count) return false;
    }
    taken_ |= std::uint64_t{1} << i;
    out = integers_->integers[i];
    return true;
  }
  /// Its position; their number for none.
  [[gnu::noinline]] std::size_t find_named_integer(const char* name) const noexcept;
  /// The reader stands at the parameter's value. False where it is not given.
  [[gnu::noinline]] bool find(const Parameter& parameter);
  bool find_position(std::size_t index);
  bool find_name(std::string_view name);
  /// The reader stands at the member of that number, which somebody has asked for.
  void take(std::size_t number) {
    if (number >= 64) [[unlikely]]
      return take_further(number);
    taken_ |= std::uint64_t{1} << number;
  }
  [[gnu::noinline]] void take_further(std::size_t number);
  [[nodiscard]] bool is_taken(std::size_t number) const noexcept;
  /// False, and the call has failed, where there are too many members.
  [[gnu::noinline]] bool make_index();
  bool step(std::string_view& name);
  void require_reader();
  void start_over();
  bool all_read();
  /// Always false.
  [[gnu::noinline]] bool missing(const Parameter& parameter, Reading reading);
  [[gnu::noinline]] void wrong(const Parameter& parameter);
  void refuse_extra(std::string_view name, bool twice);

  // What every call sets comes first, and as little as can be; the rest is set by start_over.
  Shape shape_ = Shape::unknown;
  bool more_ = false;
  std::string_view text_;
  const Received* integers_;
  std::size_t asked_ = 0;    // positions, from the first to the last that was asked for
  std::uint64_t taken_ = 0;  // of the members: bit i for the i-th that was sent

  std::unique_ptr<Extras> extras_;
  std::optional<MemberIndex> index_;  // of the members, once it is needed

  bool ended_;          // the reader has passed the last value
  std::size_t number_;  // of the value at `top`, in the order in which they were sent
  const char* root_;    // the params as a whole
};

}  // namespace wirecall::c
