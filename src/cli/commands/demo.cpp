// See demo.hpp.
#include "cli/commands/demo.hpp"

#include "wirecall/packing.hpp"

namespace wirecall {

namespace cli {
namespace {

__extension__ using Integer = __int128;  // every sum of 64-bit integers

/// A number that stays an integer as long as it can: integers of 64 bits are read and added exactly, and whatever a
/// sum of them comes to is written with all its digits. Everything else is a double.
class Number {
 public:
  Number() = default;

  bool read(Reader& reader) {
    if (std::int64_t value = 0;
        reader.read_int(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), value)) {
      integer_ = value;
      return true;
    }
    reader.clear_failure();
    if (std::uint64_t value = 0; reader.read_uint(std::numeric_limits<std::uint64_t>::max(), value)) {
      integer_ = static_cast<Integer>(value);
      return true;
    }
    reader.clear_failure();
    is_integer_ = false;
    return reader.read_double(real_);
  }

  void write(Writer& writer) const {
    if (!is_integer_) return writer.number(real_);
    if (integer_ == static_cast<std::int64_t>(integer_)) return writer.integer(static_cast<std::int64_t>(integer_));
    writer.number_text(digits(integer_));
  }

  friend Number operator+(const Number& a, const Number& b) {
    Number sum;
    sum.is_integer_ = a.is_integer_ && b.is_integer_;
    if (sum.is_integer_) {
      sum.integer_ = a.integer_ + b.integer_;
    } else {
      sum.real_ = a.real() + b.real();
    }
    return sum;
  }

 private:
  [[nodiscard]] double real() const { return is_integer_ ? static_cast<double>(integer_) : real_; }

  static std::string digits(Integer value) {
    const bool negative = value < 0;
    std::string text;
    for (; value != 0; value /= 10) {
      const int digit = static_cast<int>(value % 10);
      text.insert(text.begin(), static_cast<char>('0' + (negative ? -digit : digit)));
    }
    return negative ? "-" + text : text;
  }

  Integer integer_ = 0;
  double real_ = 0;
  bool is_integer_ = true;
};

}  // namespace
}  // namespace cli

template <>
struct Adapt<cli::Number> {
  static constexpr std::string_view name = "number";
  static bool decode(Reader& reader, cli::Number& out) { return out.read(reader); }
  static void encode(Writer& writer, const cli::Number& value) { value.write(writer); }
  static std::string schema() { return R"({"type":"number"})"; }
};

namespace cli {

static std::int64_t subtract(std::int64_t minuend, std::int64_t subtrahend) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(minuend, subtrahend, &difference)) throw Error("the difference does not fit 64 bits");
  return difference;
}

static Number sum(const Rest<Number>& numbers) {
  Number result;
  for (const Number& number : numbers) result = result + number;
  return result;
}

static Raw echo(Raw value) { return value; }

static Task<void> sleep(Context context, std::uint32_t ms) { return sleep_for(context, std::chrono::milliseconds{ms}); }

static void fail(int code, std::string message) { throw Error(code, std::move(message)); }

static Stream<std::int64_t> count(std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) co_yield i;
}

void add_demo_methods(Registry& registry) {
  registry.method("subtract", subtract, {"minuend", "subtrahend"})
      .summary("the difference of two integers")
      .packed(packing(subtract));
  registry.method("sum", sum).summary("the sum of any numbers");
  registry.method("echo", echo, {"value"}).summary("the value itself");
  registry.method("sleep", sleep, {"ms"}).summary("waits so many milliseconds, without holding others up");
  registry.method("fail", fail, {"code", "message"}).summary("an error of your choice");
  registry.method("count", count, {"n"}).summary("the numbers from 0 to n-1, made one by one");
}

}  // namespace cli
}  // namespace wirecall
