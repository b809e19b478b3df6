// Unpacking along a LayoutTree. A text and bytes of others say what is made: how much that may be is counted.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "codec/codec_time.hpp"
#include "codec/layout_tree.hpp"
#include "wirecall/layout_packer.hpp"
#include "wirecall/packed.hpp"

namespace wirecall {
namespace codec {
namespace {

using detail::PackedInput;
using detail::TypeInfoOf;
using Kind = LayoutNode::Kind;

class LayoutReader {
 public:
  LayoutReader(PackedInput& in, std::size_t bytes) : in_(&in), made_left_(kMadeBytesMin + kMadeBytesPerByte * bytes) {}

  bool unpack(const LayoutNode& node, Value& out) {
    if (depth_ == kNodesDeepMax) return in_->fail_depth();
    const bool is_level = is_counted(node);
    if (is_level && !in_->enter()) return false;
    ++depth_;
    if (has_nothing(node) && !in_->nothing(TypeInfoOf<std::monostate>::value)) return false;
    if (!content(node, out)) return false;
    --depth_;
    if (is_level) in_->leave();
    return true;
  }

 private:
  // As where the type is known: numbers are copied.
  static bool is_counted(const LayoutNode& node) noexcept {
    if (node.kind == Kind::structure || node.kind == Kind::map) return true;
    return node.kind == Kind::sequence && node.parts.front()->kind != Kind::integer &&
           node.parts.front()->kind != Kind::number;
  }

  // A byte of what comes may stand for a name of any length, and for any number of arrays within each other: so many
  // bytes are made that do not stand in what comes, and no more.
  static constexpr std::size_t kMadeBytesMin = std::size_t{64} << 20;
  static constexpr std::size_t kMadeBytesPerByte = 64;
  static constexpr std::size_t kValueBytes = sizeof(Value::Member);

  bool may_make(std::size_t bytes) {
    if (bytes > made_left_) return in_->fail("a smaller value", "more names and arrays than its bytes may stand for");
    made_left_ -= bytes;
    return true;
  }

  bool content(const LayoutNode& node, Value& out) {
    switch (node.kind) {
      case Kind::any: return in_->adapted(out);
      case Kind::null: return true;
      case Kind::boolean: {
        unsigned truth = 0;
        if (!in_->byte(2, truth, TypeInfoOf<bool>::value)) return false;
        out = Value{truth != 0};
        return true;
      }
      case Kind::integer:
      case Kind::number:
      case Kind::duration: return number(node, out);
      case Kind::string: {
        std::string_view text;
        if (!in_->string(text)) return false;
        out = Value{text};
        return true;
      }
      case Kind::bytes: {
        std::span<const std::byte> bytes;
        if (!in_->bytes(bytes)) return false;
        out = Value{Value::Bytes{bytes.begin(), bytes.end()}};
        return true;
      }
      case Kind::sized_bytes: {
        if (in_->left() < node.length) return in_->fail(words_for(node), "the end of the bytes");
        Value::Bytes bytes(node.length);
        if (node.length != 0) in_->copy(bytes.data(), node.length);
        out = Value{std::move(bytes)};
        return true;
      }
      case Kind::enumeration: {
        std::string name;
        if (!enumerator(node, name)) return false;
        out = Value{std::move(name)};
        return true;
      }
      case Kind::optional: {
        bool present = false;
        return is_present(present) && (!present || unpack(*node.parts.front(), out));
      }
      case Kind::variant: {
        unsigned index = 0;
        if (!in_->byte(static_cast<unsigned>(node.parts.size()), index, TypeInfoOf<std::uint8_t>::value)) return false;
        return unpack(*node.parts[index], out);
      }
      case Kind::time: return time(node, out);
      case Kind::array: return elements(node, node.length, out);
      case Kind::tuple: return elements(node, node.parts.size(), out);
      case Kind::sequence: {
        std::size_t count = 0;
        return in_->count(count) && elements(node, count, out);
      }
      case Kind::map: return map(node, out);
      case Kind::structure: return members(node, out);
    }
    std::unreachable();
  }

  bool is_present(bool& out) {
    unsigned present = 0;
    if (!in_->byte(2, present, TypeInfoOf<bool>::value)) return false;
    out = present != 0;
    return true;
  }

  bool number(const LayoutNode& node, Value& out) {
    return with_number(node, [&]<class T>(T number) {
      if (!in_->number(number, TypeInfoOf<T>::value)) return false;
      if constexpr (std::is_floating_point_v<T>) {
        out = Value{double_of(number)};
      } else {
        out = Value{number};
      }
      return true;
    });
  }
  // The double that has the float's shortest text: 0.1F is 0.1.
  static double double_of(double number) noexcept { return number; }
  static double double_of(float number) {
    if (!std::isfinite(number)) return number;
    return from_json<double>(to_json(number)).value_or(number);
  }

  template <class T>
  bool integer(const LayoutNode& node, T& out) {
    return with_number(node, [&]<class Own>(Own own) {
      if (!in_->number(own, TypeInfoOf<Own>::value)) return false;
      out = static_cast<T>(own);
      return true;
    });
  }

  bool enumerator(const LayoutNode& node, std::string& out) {
    std::int64_t number = 0;
    if (!integer(node, number)) return false;
    const auto found = node.enumerator_names.find(number);
    if (found == node.enumerator_names.end()) return in_->fail(words_for(node), std::to_string(number));
    out = found->second;
    return may_make(out.size());
  }

  // As encode_time_point.
  bool time(const LayoutNode& node, Value& out) {
    std::int64_t ticks = 0;
    if (!integer(node, ticks)) return false;
    std::int64_t seconds = ticks;
    std::int64_t part = 0;
    if (node.denominator != 1) {
      seconds = ticks / node.denominator;
      part = ticks % node.denominator;
      if (part < 0) {
        part += node.denominator;
        --seconds;
      }
    } else if (__builtin_mul_overflow(ticks, node.numerator, &seconds)) {
      seconds = std::numeric_limits<std::int64_t>::max();  // no year of RFC 3339 either
    }
    const int digits = node.denominator == 1           ? 0
                       : node.denominator <= 1'000     ? 3
                       : node.denominator <= 1'000'000 ? 6
                                                       : 9;
    const auto nanoseconds = static_cast<std::int32_t>(part * (1'000'000'000 / node.denominator));
    std::string text = format_time({seconds, nanoseconds}, digits);
    if (text.empty()) return in_->fail("a date-time from the year 0 to 9999", std::to_string(ticks));
    out = Value{std::move(text)};
    return true;
  }

  bool elements(const LayoutNode& node, std::size_t count, Value& out) {
    if (node.kind != Kind::sequence && !may_make(kValueBytes)) return false;
    Value::Array elements;
    for (std::size_t i = 0; i < count; ++i)
      if (!unpack(*node.parts[node.kind == Kind::tuple ? i : 0], elements.emplace_back())) return in_->failed_at(i);
    out = Value{std::move(elements)};
    return true;
  }

  bool key(const LayoutNode& node, std::string& out) {
    if (node.kind == Kind::enumeration) return enumerator(node, out);
    Value key;
    if (!unpack(node, key)) return false;
    out = key.is_string() ? key.as_string() : key.dump();
    return true;
  }

  bool map(const LayoutNode& node, Value& out) {
    std::size_t count = 0;
    if (!in_->count(count)) return false;
    Value::Object members;
    for (std::size_t i = 0; i < count; ++i) {
      auto& [name, element] = members.emplace_back();
      if (!key(*node.parts[0], name) || !unpack(*node.parts[1], element)) return in_->failed_at(i);
    }
    out = Value{std::move(members)};
    return true;
  }

  // What is optional and empty is left out.
  bool members(const LayoutNode& node, Value& out) {
    if (!may_make(kValueBytes)) return false;
    Value::Object members;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const LayoutNode* part = node.parts[i];
      if (part->kind == Kind::optional) {
        bool present = false;
        if (!is_present(present)) return in_->failed_at(node.names[i]);
        if (!present) continue;
        part = part->parts.front();
      }
      if (!may_make(kValueBytes + node.names[i].size())) return false;
      if (!unpack(*part, members.emplace_back(node.names[i], Value{}).second)) return in_->failed_at(node.names[i]);
    }
    out = Value{std::move(members)};
    return true;
  }

  PackedInput* in_;
  std::size_t made_left_;
  std::size_t depth_ = 0;
};

}  // namespace
}  // namespace codec

std::expected<Value, Error> LayoutPacker::unpack(std::span<const std::byte> bytes, std::uint32_t depth_max) const {
  detail::PackedInput in{bytes, depth_max};
  codec::LayoutReader reader{in, bytes.size()};
  Value value;
  if (in.begin(tree_->layout()) && reader.unpack(tree_->root(), value) && in.finish()) return value;
  return std::unexpected(detail::packed_error(in.take_failure()));
}

}  // namespace wirecall
