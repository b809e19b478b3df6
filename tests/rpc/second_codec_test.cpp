// The codec seam takes a second implementation: values as a tag, then their bytes. Every reflected type goes through it
// and comes back, failures tell the same as in JSON, and a method is called with params in it.
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

// n t f | i <8> u <8> d <8> | # s b <4-byte length> bytes | [ ... ] | { (s name, value)... }
class TaggedReader final : public Reader {
 public:
  const Codec& codec() const noexcept override;
  void reset(std::string_view value) override {
    p_ = value.data();
    clear_failure();
    allow_rereading(value.size());
  }
  ValueKind kind() const override {
    switch (*p_) {
      case 'n': return ValueKind::null;
      case 't':
      case 'f': return ValueKind::boolean;
      case 's': return ValueKind::string;
      case 'b': return ValueKind::bytes;
      case '[': return ValueKind::array;
      case '{': return ValueKind::object;
      default: return ValueKind::number;
    }
  }
  bool read_null() override { return *p_ == 'n' && ++p_ != nullptr; }
  bool read_bool(bool& out) override {
    if (kind() != ValueKind::boolean) return fail("boolean");
    out = *p_++ == 't';
    return true;
  }
  bool read_int(std::int64_t min, std::int64_t max, std::int64_t& out) override {
    if (*p_ != 'i') return fail("integer");
    const auto value = word<std::int64_t>();
    if (value < min || value > max) return fail("integer from " + std::to_string(min) + " to " + std::to_string(max));
    return take(value, out);
  }
  bool read_uint(std::uint64_t max, std::uint64_t& out) override {
    if (*p_ != 'i' && *p_ != 'u') return fail("integer");
    const auto value = word<std::uint64_t>();
    if (value > max || (*p_ == 'i' && word<std::int64_t>() < 0))
      return fail("integer from 0 to " + std::to_string(max));
    return take(value, out);
  }
  bool read_double(double& out) override {
    if (*p_ == 'i') return take(static_cast<double>(word<std::int64_t>()), out);
    if (*p_ != 'd') return fail("number");
    return take(word<double>(), out);
  }
  bool read_number_text(std::string_view& out) override {
    if (*p_ == '#') return text(out);
    if (kind() != ValueKind::number) return fail("number");
    number_ = *p_ == 'd' ? to_json(word<double>()) : json(0);
    out = number_;
    p_ += 9;
    return true;
  }
  bool read_string(std::string_view& out) override { return *p_ == 's' ? text(out) : fail("string"); }
  bool read_bytes(std::span<const std::byte>& out) override {
    if (*p_ != 'b') return fail("bytes");
    std::string_view view;
    text(view);
    out = std::as_bytes(std::span{view});
    return true;
  }
  bool begin_array() override { return *p_ == '[' ? ++p_ != nullptr : fail("array"); }
  bool next_element() override { return *p_ != ']' || ++p_ == nullptr; }
  bool begin_object() override { return *p_ == '{' ? ++p_ != nullptr : fail("object"); }
  bool next_member(std::string_view& name) override {
    if (*p_ == '}') return ++p_ == nullptr;
    return text(name);
  }
  std::string_view skip() override {
    const char* const begin = p_;
    int depth = 0;
    do {
      switch (*p_) {
        case '[':
        case '{': ++depth, ++p_; break;
        case ']':
        case '}': --depth, ++p_; break;
        case 'n':
        case 't':
        case 'f': ++p_; break;
        case 'i':
        case 'u':
        case 'd': p_ += 9; break;
        default: {
          std::string_view ignored;
          text(ignored);
        }
      }
    } while (depth != 0);
    return {begin, static_cast<std::size_t>(p_ - begin)};
  }
  std::string json(std::size_t) override {
    if (*p_ == 's') {
      const char* const begin = p_;
      std::string_view view;
      text(view);
      p_ = begin;
      return to_json(view);
    }
    return *p_ == 'i' ? std::to_string(word<std::int64_t>()) : std::string{*p_};
  }
  const char* mark() const noexcept override { return p_; }
  void rewind(const char* mark) noexcept override { p_ = mark; }

 private:
  template <class T>
  T word() const {
    T value;
    std::memcpy(&value, p_ + 1, sizeof value);
    return value;
  }
  template <class T>
  bool take(T value, T& out) {
    out = value;
    p_ += 9;
    return true;
  }
  bool text(std::string_view& out) {
    std::uint32_t size;
    std::memcpy(&size, p_ + 1, sizeof size);
    out = {p_ + 5, size};
    p_ += 5 + size;
    return true;
  }

  const char* p_ = nullptr;
  std::string number_;
};

class TaggedWriter final : public Writer {
 public:
  void reset(Buffer& out) override {
    out_ = &out;
    forget();
  }
  void null() override { out_->push_back('n'); }
  void boolean(bool value) override { out_->push_back(value ? 't' : 'f'); }
  void integer(std::int64_t value) override { word('i', value); }
  void unsigned_integer(std::uint64_t value) override { word(value >> 63 != 0 ? 'u' : 'i', value); }
  void number(double value) override { word('d', value); }
  void number(float value) override { word('d', static_cast<double>(value)); }
  void number_text(std::string_view value) override { text('#', value); }
  void string(std::string_view utf8) override { text('s', utf8); }
  void bytes(std::span<const std::byte> data) override {
    text('b', {reinterpret_cast<const char*>(data.data()), data.size()});
  }
  void begin_array(std::size_t) override { out_->push_back('['); }
  void end_array() override { out_->push_back(']'); }
  void begin_object(std::size_t) override { out_->push_back('{'); }
  void key(std::string_view utf8) override { text('s', utf8); }
  void end_object() override { out_->push_back('}'); }
  void json(std::string_view) override { fail("this encoding does not transcode"); }

 private:
  template <class T>
  void word(char tag, T value) {
    out_->push_back(tag);
    out_->append({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void text(char tag, std::string_view value) {
    const auto size = static_cast<std::uint32_t>(value.size());
    out_->push_back(tag);
    out_->append({reinterpret_cast<const char*>(&size), sizeof size});
    out_->append(value);
  }

  Buffer* out_ = nullptr;
};

class TaggedCodec final : public Codec {
 public:
  std::string_view name() const noexcept override { return "tagged"; }
  Scan scan(std::string_view text, std::uint32_t) const noexcept override {
    return {ScanStatus::complete, text.size()};
  }
  std::unique_ptr<Reader> reader() const override { return std::make_unique<TaggedReader>(); }
  std::unique_ptr<Writer> writer() const override { return std::make_unique<TaggedWriter>(); }
};

const Codec& TaggedReader::codec() const noexcept {
  static const TaggedCodec codec;
  return codec;
}

template <class T>
Buffer encoded(const T& value) {
  Buffer out;
  TaggedWriter writer;
  writer.reset(out);
  encode(writer, value);
  EXPECT_FALSE(writer.failed()) << writer.failure();
  static_cast<void>(out.padded());
  return out;
}

enum class Colour { red, green };
struct Point {
  int x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
struct Everything {
  bool flag = false;
  std::int8_t small = 0;
  std::uint64_t large = 0;
  float real = 0;
  std::string text;
  Colour colour = Colour::red;
  std::optional<Point> maybe;
  std::variant<int, std::string> either;
  std::vector<Point> points;
  std::map<std::string, int> named;
  std::tuple<int, bool> pair;
  std::vector<std::byte> data;
  bool operator==(const Everything&) const = default;
};

TEST(SecondCodec, CarriesEveryReflectedTypeThereAndBack) {
  const Everything sent{.flag = true,
                        .small = -128,
                        .large = std::uint64_t(-1),
                        .real = 0.5F,
                        .text = std::string("a\0b", 3),
                        .colour = Colour::green,
                        .maybe = Point{1, -2.5},
                        .either = "or",
                        .points = {{3, 4}, {}},
                        .named = {{"one", 1}, {"two", 2}},
                        .pair = {7, true},
                        .data = {std::byte{0}, std::byte{255}}};
  const Buffer text = encoded(sent);
  TaggedReader reader;
  reader.reset(text.view());
  Everything got;
  ASSERT_TRUE(decode(reader, got)) << decode_error(reader).data();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(reader.mark(), text.data() + text.size());
}

TEST(SecondCodec, TellsFailuresAsJsonDoes) {
  const Buffer text = encoded(std::map<std::string, std::string>{{"x", "1"}, {"y", "2"}});
  TaggedReader reader;
  reader.reset(text.view());
  Point point;
  ASSERT_FALSE(decode(reader, point));
  EXPECT_EQ(decode_error(reader).data(), R"({"loc":["x"],"expected":"integer","got":"\"1\""})");
}

TEST(SecondCodec, MethodsAreCalledWithParamsInIt) {
  Registry registry;
  registry.method("subtract", [](int a, int b) { return a - b; }, {"a", "b"});
  registry.method("later", [](std::string text) -> Task<std::string> { co_return text + "!"; }, {"text"});
  const TaggedCodec codec;
  test::RecordingSink sink;
  const Limits limits;
  rpc::LoopContext loop_context{codec};
  rpc::Dispatcher dispatcher{registry, sink, limits, loop_context};
  const auto ask = [&](std::string_view method, const Buffer& params) {
    Received message;
    const test::PaddedText frame{R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":1})"};
    EXPECT_EQ(read_message(frame.view(), limits, true, message).status, ScanStatus::complete);
    message.present |= 1U << static_cast<unsigned>(Member::params);
    message.spans[static_cast<std::size_t>(Member::params)] = {params.data(), params.size()};
    dispatcher.handle(message);
    const std::string reply = sink.messages.back();
    constexpr std::string_view kHead = R"({"jsonrpc":"2.0","result":)";
    constexpr std::string_view kTail = R"(,"id":1})";
    EXPECT_TRUE(reply.starts_with(kHead) && reply.ends_with(kTail)) << reply;
    return reply.substr(kHead.size(), reply.size() - kHead.size() - kTail.size());
  };
  const auto text = [](const Buffer& buffer) { return std::string{buffer.view()}; };
  EXPECT_EQ(ask("subtract", encoded(std::vector{42, 23})), text(encoded(19)));
  EXPECT_EQ(ask("subtract", encoded(std::map<std::string, int>{{"b", 23}, {"a", 42}})), text(encoded(19)));
  EXPECT_EQ(ask("later", encoded(std::vector<std::string>{"soon"})), text(encoded(std::string{"soon!"})));
}

}  // namespace
}  // namespace wirecall
