// The parser of layouts, and what can be told of a type without a value.
#include "codec/layout_tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "codec/codec_number.hpp"
#include "codec/decode_failure.hpp"
#include "wirecall/detail/names.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::codec {

using Kind = LayoutNode::Kind;

class LayoutParser {
 public:
  LayoutParser(LayoutTree& tree, std::string_view text) : nodes_(&tree.nodes_), text_(text) {}

  const LayoutNode* parse() {
    const LayoutNode* const root = type(0);
    if (at_ != text_.size()) refuse("the end");
    return root;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    throw std::invalid_argument("a layout has " + std::string{expected} + " at position " + std::to_string(at_) +
                                ", not \"" + shorten(std::string{text_.substr(at_)}) + '"');
  }

  [[nodiscard]] bool next_is(std::string_view words) const { return text_.substr(at_).starts_with(words); }
  bool take(std::string_view words) {
    if (!next_is(words)) return false;
    at_ += words.size();
    return true;
  }
  void require(std::string_view words) {
    if (!take(words)) refuse(words);
  }

  template <class Integer>
  Integer integer() {
    Integer value{};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) refuse("a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  // An identifier, or a JSON string.
  std::string name() {
    const std::size_t begin = at_;
    if (!next_is("\"")) {
      while (at_ != text_.size() && detail::is_name_byte(text_[at_])) ++at_;
      if (at_ == begin) refuse("a name");
      return std::string{text_.substr(begin, at_ - begin)};
    }
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) refuse("a name");
    auto read = from_json<std::string>(text_.substr(begin, end + 1 - begin));
    if (!read) refuse("a name");
    at_ = end + 1;
    return *std::move(read);
  }

  // "i64", "u8", "f32"
  void number(LayoutNode& node) {
    node.is_floating = next_is("f");
    node.is_signed = next_is("i") || node.is_floating;
    constexpr std::array<std::string_view, 10> kNames{"i8",  "i16", "i32", "i64", "u8",
                                                      "u16", "u32", "u64", "f32", "f64"};
    const auto named = std::ranges::find_if(kNames, [this](std::string_view one) { return take(one); });
    if (named == kNames.end()) refuse("a type");
    unsigned bits = 0;
    std::from_chars(named->data() + 1, named->data() + named->size(), bits);
    node.size = static_cast<std::uint8_t>(bits / 8);
  }

  void ticks(LayoutNode& node) {
    number(node);
    require("<");
    node.numerator = integer<std::int64_t>();
    require("/");
    node.denominator = integer<std::int64_t>();
    require(">");
    if (node.numerator < 1 || node.denominator < 1) refuse("a unit of time before that");
    if (node.kind != Kind::time) return;
    const bool counts_seconds = node.denominator == 1 || (node.numerator == 1 && 1'000'000'000 % node.denominator == 0);
    if (node.is_floating || !counts_seconds) refuse("a point in time in whole seconds or decimal parts before that");
  }

  std::size_t length() {
    require("[");
    const auto count = integer<std::size_t>();
    require("]");
    return count;
  }

  void enumerators(LayoutNode& node) {
    number(node);
    if (node.is_floating) refuse("an enum of integers before that");
    do {
      require(node.enumerators.empty() ? "<" : ",");
      std::string own = name();
      require("=");
      const auto number = integer<std::int64_t>();
      const bool fits = with_number(node, [number]<class N>(N) {
        return sizeof(N) == sizeof number || static_cast<std::int64_t>(static_cast<N>(number)) == number;
      });
      if (!fits) refuse("a number of that type before that");
      const auto [entry, is_new] = node.enumerators.emplace(std::move(own), number);
      if (!is_new) refuse("another name before that");
      node.enumerator_names.emplace(number, entry->first);
    } while (!take(">"));
  }

  void list(LayoutNode& node, std::string_view open, std::string_view close, std::size_t depth) {
    require(open);
    if (take(close)) return;
    do {
      node.parts.push_back(type(depth));
    } while (take(","));
    require(close);
  }
  void list_of(LayoutNode& node, std::size_t least, std::size_t most, std::size_t depth) {
    list(node, "<", ">", depth);
    if (node.parts.size() < least || node.parts.size() > most) refuse("another number of types before that");
  }

  void structure(LayoutNode& node, std::size_t depth) {
    structs_.push_back(&node);
    std::set<std::string> names;
    if (take("}")) return;
    do {
      node.names.push_back(name());
      if (!names.insert(node.names.back()).second) refuse("another name before that");
      require(":");
      node.parts.push_back(type(depth));
    } while (take(","));
    require("}");
  }

  void brackets(LayoutNode& node, std::size_t depth) {
    node.kind = Kind::sequence;
    list(node, "[", "]", depth);
    if (node.parts.size() != 1) refuse("one type before that");
    if (!next_is("[")) return;
    node.kind = Kind::array;
    node.length = length();
  }

  const LayoutNode* type(std::size_t depth) {
    if (depth == LayoutTree::kDepthMax) refuse("no more levels");
    if (take("#")) {
      const auto place = integer<std::size_t>();
      if (place >= structs_.size()) refuse("a struct that has begun before that");
      return structs_[place];
    }
    if (nodes_->size() == LayoutTree::kNodesMax) refuse("no more types");
    LayoutNode& node = nodes_->emplace_back();
    const auto is = [&](std::string_view word, Kind kind) {
      if (!take(word)) return false;
      node.kind = kind;
      return true;
    };
    constexpr std::size_t kAlternativesMax = 64;
    if (is("{", Kind::structure)) {
      structure(node, depth + 1);
    } else if (next_is("(")) {
      node.kind = Kind::tuple;
      list(node, "(", ")", depth + 1);
    } else if (next_is("[")) {
      brackets(node, depth + 1);
    } else if (is("optional", Kind::optional)) {
      list_of(node, 1, 1, depth + 1);
    } else if (is("one_of", Kind::variant)) {
      list_of(node, 1, kAlternativesMax, depth + 1);
    } else if (is("map", Kind::map)) {
      list_of(node, 2, 2, depth + 1);
      const Kind key = node.parts.front()->kind;
      if (key != Kind::string && key != Kind::integer && key != Kind::enumeration)
        refuse("keys that are strings, integers or enums before that");
    } else if (is("enum:", Kind::enumeration)) {
      enumerators(node);
    } else if (is("duration:", Kind::duration) || is("time:", Kind::time)) {
      ticks(node);
    } else if (is("bytes", Kind::bytes)) {
      if (next_is("[")) {
        node.kind = Kind::sized_bytes;
        node.length = length();
      }
    } else if (!is("any", Kind::any) && !is("null", Kind::null) && !is("bool", Kind::boolean) &&
               !is("str", Kind::string)) {
      number(node);
      node.kind = node.is_floating ? Kind::number : Kind::integer;
    }
    return &node;
  }

  std::deque<LayoutNode>* nodes_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<const LayoutNode*> structs_;  // in the order of their braces
};

LayoutTree::LayoutTree(std::string_view text) : layout_(std::string{text}), root_(LayoutParser{*this, text}.parse()) {}

// ---- what is known of a node ----

bool has_nothing(const LayoutNode& node) noexcept {
  switch (node.kind) {
    case Kind::null: return true;
    case Kind::sized_bytes:
    case Kind::array: return node.length == 0;
    case Kind::tuple:
    case Kind::structure: return node.parts.empty();
    default: return false;
  }
}

static std::string enumerator_words(const LayoutNode& node) {
  constexpr std::size_t kShown = 16;
  std::string words;
  std::size_t count = 0;
  for (const auto& [name, number] : node.enumerators) {
    if (count++ == kShown) return words + ", ...";
    words += (words.empty() ? "one of " : ", ") + shorten(to_json(name));
  }
  return words;
}

std::string words_for(const LayoutNode& node) {
  switch (node.kind) {
    case Kind::any: return "a value";
    case Kind::null: return "null";
    case Kind::boolean: return "boolean";
    case Kind::integer:
    case Kind::number:
    case Kind::duration:
      return with_number(node, []<class T>(T) -> std::string {
        if constexpr (std::is_floating_point_v<T>) {
          return "number";
        } else {
          return integer_words(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
        }
      });
    case Kind::string: return "string";
    case Kind::bytes: return "bytes";
    case Kind::sized_bytes: return std::to_string(node.length) + R"( bytes as {"$bytes":"<base64>"})";
    case Kind::enumeration: return enumerator_words(node);
    case Kind::time: return "a date-time that the time point can hold";
    case Kind::array: return "array of length " + std::to_string(node.length);
    case Kind::tuple: return "array of length " + std::to_string(node.parts.size());
    case Kind::sequence: return "array";
    case Kind::map:
    case Kind::structure: return "object";
    case Kind::optional: return words_for(*node.parts.front());
    case Kind::variant: return "one of the " + std::to_string(node.parts.size()) + " types of a variant";
  }
  std::unreachable();
}

}  // namespace wirecall::codec
