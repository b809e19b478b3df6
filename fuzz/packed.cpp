// Packed values over any bytes: they stand behind the right hash, so that they are read as values of the type. What is
// taken is packed again, is read back, and has one form from then on; a value that JSON can hold is the same in it.
// Who knows the layout's text alone takes what is taken by type, as the same value. And any text as a layout, with
// values behind it.
#include "wirecall/packed.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "fuzz/texts.hpp"
#include "wirecall/layout_packer.hpp"
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

/// What has been unpacked by a text alone can be packed again by it.
std::optional<wirecall::Value> by_text(const wirecall::LayoutPacker& packer, std::span<const std::byte> bytes,
                                       std::string_view input) {
  auto value = packer.unpack(bytes, 4096);
  if (!value || !as_json(*value)) return std::nullopt;
  const auto packed = packer.pack(*value);
  require(packed.has_value(), "what was unpacked by a layout's text cannot be packed by it", input);
  require(packer.unpack(*packed, 4096).has_value(), "what was packed by a layout's text cannot be unpacked", input);
  return *std::move(value);
}

template <class T>
void check_by_text(const T& value, std::string_view input) {
  static const wirecall::LayoutPacker packer{wirecall::packed_layout<T>()};
  const auto json = as_json(value);
  if (!json) return;
  const auto same = by_text(packer, wirecall::to_packed(value), input);
  require(same.has_value(), "a layout's text takes less than the type", input);
  require(wirecall::Value::parse(same->dump()).value() == wirecall::Value::parse(*json).value(),
          "by a layout's text it is another value", input);
}

/// A layout, a zero byte, and the bytes of a value behind the hash.
void check_layout(std::string_view input) {
  const std::size_t end = input.find('\0');
  if (end == input.npos) return;
  std::optional<wirecall::LayoutPacker> packer;
  try {
    packer.emplace(input.substr(0, end));
  } catch (const std::invalid_argument&) {
    return;
  }
  const std::uint64_t hash = wirecall::detail::Layout{std::string{packer->text()}}.hash();
  std::vector<std::byte> bytes(sizeof hash);
  std::memcpy(bytes.data(), &hash, sizeof hash);
  for (const char byte : input.substr(end + 1)) bytes.push_back(static_cast<std::byte>(byte));
  static_cast<void>(by_text(*packer, bytes, input));
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
  check_by_text(*value, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest = fuzz::text_of(data + 1, size - 1);
  switch (data[0] % 6) {
    case 0: check<Whole>(rest); break;
    case 1: check<Node>(rest); break;
    case 2: check<std::map<int, std::vector<std::string>>>(rest); break;
    case 3: check<std::vector<Leaf>, std::vector<OlderLeaf>>(rest); break;
    case 4: check_layout(rest); break;
    default: check<wirecall::Value>(rest);
  }
  return 0;
}
