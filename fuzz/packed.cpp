// Packed values over any bytes: they stand behind the right hash, so that they are read as values of the type. What is
// taken is packed again, is read back, and has one form from then on; a value that JSON can hold is the same in it.
#include "wirecall/packed.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "fuzz/texts.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace {

using fuzz::require;

enum class Color { red, green = 5 };
struct Leaf {
  int number = 0;
  std::optional<std::string> text;
};
struct Node {
  std::string name;
  Color color = Color::red;
  std::vector<std::variant<Leaf, std::map<std::string, double>, std::vector<short>>> parts;
  std::unique_ptr<Node> next;
  std::vector<std::byte> data;
  std::optional<bool> flag;
};
struct Whole {
  Node node;
  std::vector<Node> nodes;
  std::tuple<std::chrono::milliseconds, std::array<Leaf, 2>> fixed;
  wirecall::Value any;
};

/// The hash of Of.
template <class Of>
std::vector<std::byte> behind_hash(std::string_view bytes) {
  static const std::vector<std::byte> whole = wirecall::to_packed(Of{});
  std::vector<std::byte> out{whole.begin(), whole.begin() + 8};
  for (const char byte : bytes) out.push_back(static_cast<std::byte>(byte));
  out.shrink_to_fit();
  return out;
}

/// What Leaf has been, whose hash Leaf takes too.
struct OlderLeaf {
  int number = 0;
};

template <class T>
std::optional<std::string> as_json(const T& value) {
  try {
    return wirecall::to_json(value);
  } catch (const wirecall::Error&) {
    return std::nullopt;  // NaN, and types of extensions
  }
}

template <class T, class Of = T>
void check(std::string_view bytes) {
  const auto value = wirecall::from_packed<T>(behind_hash<Of>(bytes));
  if (!value) {
    require(value.error().code() == -32602 && !value.error().data().empty(), "refused without a reason", bytes);
    return;
  }
  const auto packed = wirecall::to_packed(*value);
  const auto back = wirecall::from_packed<T>(packed);
  require(back.has_value(), "what was packed cannot be read", bytes);
  require(wirecall::to_packed(*back) == packed, "what was packed is another value", bytes);
  require(as_json(*back) == as_json(*value), "what was packed is another value in JSON", bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest = fuzz::text_of(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0: check<Whole>(rest); break;
    case 1: check<Node>(rest); break;
    case 2: check<std::map<int, std::vector<std::string>>>(rest); break;
    case 3: check<std::vector<Leaf>, std::vector<OlderLeaf>>(rest); break;
    default: check<wirecall::Value>(rest);
  }
  return 0;
}
