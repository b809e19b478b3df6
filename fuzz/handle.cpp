// Registry::handle on any bytes, with methods that take about every kind of type: there are as many replies as
// docs/wire.md says, each valid JSON with the members it should have, in order, and the id as it was sent.
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <variant>

#include "codec/json_scan.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/slow_envelope.hpp"
#include "fuzz/texts.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace fuzz_handle {

enum class Colour { red, green, blue };

struct Inner {
  int a = 0;
  std::optional<std::string> name;
};

struct Shape {
  std::string name;
  Colour colour = Colour::red;
  std::optional<double> x;
  std::variant<std::int64_t, std::string, Inner> key;
  std::vector<Inner> items;
  std::map<std::string, std::vector<std::uint8_t>> values;
  std::unique_ptr<Shape> nested;
};

int subtract(int minuend, int subtrahend) {
  return static_cast<int>(static_cast<unsigned>(minuend) - static_cast<unsigned>(subtrahend));
}

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", subtract, {"a", "b"});
  registry.method("sum", [](const wirecall::Rest<double>& numbers) {
    double sum = 0;  // which may become infinite: then there is no result
    for (const double number : numbers) sum += number;
    return sum;
  });
  registry.method("echo", [](wirecall::Value value) { return value; }, {"a"});
  registry.method("raw", [](wirecall::Raw value) { return value; }, {"params"});
  registry.method("shapes", [](std::vector<Shape> shapes) { return shapes; }, {"items"});
  registry.method("text", [](std::string_view text) { return text; }, {"name"});
  registry.method("real", [](float narrow, double wide) { return std::pair{narrow, wide}; }, {"x", "a"});
  registry.method("many", [](std::tuple<bool, std::uint64_t, std::int8_t> tuple, std::array<int, 2> two,
                             std::map<int, std::string> map) { return std::tuple{tuple, two, map}; });
  registry.method("bytes", [](std::vector<std::byte> bytes) { return bytes; }, {"x"});
  registry.method("at", [](std::chrono::sys_time<std::chrono::milliseconds> at) { return at; }, {"a"});
  registry.method("times", [](std::chrono::milliseconds a, std::chrono::duration<double> b) { return std::pair{a, b}; },
                  {"a", "b"});
  registry.method("fail",
                  [](int code, std::string message) -> int { throw wirecall::Error{code, std::move(message)}; });
  registry.method("none", [](std::optional<Shape>) -> wirecall::Task<void> { co_return; });
  return registry;
}

}  // namespace fuzz_handle

namespace {

using fuzz::require;
using wirecall::MessageKind;

// One reply: jsonrpc, result or error, id, nothing else. `code` is 0 where any outcome is right.
void check_reply(std::string_view reply, std::string_view id, int code, std::string_view input) {
  require(!reply.empty() && reply[0] == '{', "a reply is no object", input);
  const std::vector<fuzz::SlowMember> members = fuzz::slow_members(reply);
  require(members.size() == 3, "a reply has not three members", input);
  require(members[0].name == "jsonrpc" && members[0].text == "\"2.0\"", "a reply does not begin with jsonrpc", input);
  require(members[2].name == "id" && members[2].text == id, "a reply's id is not as sent", input);
  if (members[1].name == "result") return require(code == 0, "a result where an error should be", input);
  require(members[1].name == "error" && members[1].text[0] == '{', "a reply has neither result nor error", input);
  const std::vector<fuzz::SlowMember> error = fuzz::slow_members(members[1].text);
  require(error.size() == 2 || error.size() == 3, "an error object has two or three members", input);
  require(error[0].name == "code" && fuzz::is_number_text(error[0].text), "an error without a code", input);
  require(error[1].name == "message" && error[1].text[0] == '"', "an error without a message", input);
  require(error.size() == 2 || error[2].name == "data", "an error object has a member of its own", input);
  require(code == 0 || error[0].text == std::to_string(code), "another error than it should be", input);
}

// White space between tokens, of which replies have none.
bool has_space(std::string_view json) {
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!quoted && wirecall::is_space(json[i])) return true;
    if (quoted && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      quoted = !quoted;
    }
  }
  return false;
}

// The same with two blanks behind every bracket, comma and colon: what is read in one pass with the envelope, because
// it is compact, is then read the general way.
std::string spread(std::string_view json) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    out.push_back(json[i]);
    if (quoted && json[i] == '\\' && i + 1 < json.size()) {
      out.push_back(json[++i]);
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && std::string_view{"[{,:"}.find(json[i]) != std::string_view::npos) {
      out.append("  ");
    }
  }
  return out;
}

void check_spread(wirecall::Registry& registry, std::string_view out, std::string_view input) {
  const fuzz::PaddedText padded{input};
  const wirecall::Scan scan = wirecall::json::scan_scalar(padded.view(), wirecall::Limits{}.depth);
  if (!fuzz::is_whole(padded.view(), scan)) return;
  // An error quotes what was there, blanks included.
  if (out.find(R"("got":"[)") != out.npos || out.find(R"("got":"{)") != out.npos) return;
  require(registry.handle(spread(input)) == out, "blanks between tokens change the answer", input);
}

void check_output(std::string_view out, std::string_view input) {
  static fuzz::SimdjsonOpinion simdjson{2 * wirecall::Limits{}.depth};
  if (!out.empty()) {
    const std::string ranged = fuzz::with_numbers_in_range(out);
    require(simdjson.accepts(fuzz::PaddedText{ranged}.view()), "what is sent is no JSON", input);
    require(!has_space(out), "a reply is not compact", input);
  }
  const fuzz::PaddedText padded{input};
  const wirecall::Limits limits;
  const wirecall::Scan scan = wirecall::json::scan_scalar(padded.view(), limits.depth);
  if (!fuzz::is_whole(padded.view(), scan)) return check_reply(out, "null", -32700, input);
  const std::size_t begin = input.find_first_not_of(" \t\r\n");
  const fuzz::SlowMessage message = fuzz::read_slowly(input.substr(begin, scan.offset - begin), limits.batch);
  const auto check_single = [&](const fuzz::SlowMessage& single, std::string_view reply) {
    check_reply(reply, single.id, single.kind == MessageKind::invalid ? -32600 : 0, input);
  };
  const auto is_answered = [](const fuzz::SlowMessage& single) {
    return single.kind == MessageKind::request || single.kind == MessageKind::invalid;
  };
  if (message.kind != MessageKind::batch) {
    if (is_answered(message)) return check_single(message, out);
    return require(out.empty(), "an answer to what is never answered", input);
  }
  std::vector<fuzz::SlowMessage> answered;
  for (const std::string_view element : message.elements) {
    fuzz::SlowMessage single = element[0] == '[' ? fuzz::SlowMessage{} : fuzz::read_slowly(element, limits.batch);
    if (is_answered(single)) answered.push_back(std::move(single));
  }
  if (answered.empty()) return require(out.empty(), "an answer to a batch of which nothing is answered", input);
  require(out.starts_with('['), "a batch is not answered with an array", input);
  const std::vector<std::string_view> replies = fuzz::slow_values(out);
  require(replies.size() == answered.size(), "a batch has another number of replies than requests", input);
  for (std::size_t i = 0; i < replies.size(); ++i) check_single(answered[i], replies[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static wirecall::Registry registry = fuzz_handle::make_registry();
  const std::string_view input = fuzz::text_of(data, size);
  wirecall::Buffer out;
  {
    const fuzz::PaddedText padded{input};
    registry.handle_padded(padded.view(), out);
  }
  check_output(out.view(), input);
  check_spread(registry, out.view(), input);
  require(registry.handle(input) == out.view(), "the same text gets another answer the second time", input);
  return 0;
}
